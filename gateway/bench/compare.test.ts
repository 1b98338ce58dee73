import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createColors } from "picocolors";
import { afterAll, describe, expect, it } from "vitest";
import { compare, readSaved } from "./compare.ts";
import { type BenchDocument, DOCUMENT_FORMAT, type Measures, noMeasures, type Verdict, type WorkloadResult } from "./document.ts";
import { plansOf } from "./plan.ts";
import { comparisonLines, reportLines } from "./table.ts";

const folder = mkdtempSync(join(tmpdir(), "penstock-bench-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function result(workload: string, measures: Partial<Measures>, verdict: Verdict = "ok", readers = 1_000): WorkloadResult {
  return {
    workload,
    plan: plansOf([workload], { readers })[0]!,
    verdict,
    reasons: verdict === "ok" ? [] : ["events doubled: 3", "and some more words about it ".repeat(8).trim()],
    notes: [],
    measures: { ...noMeasures(), ...measures },
    judged: {
      readers,
      published: 500,
      events: 50_000,
      lost: 0,
      doubled: 0,
      disordered: 0,
      missedInGaps: 7,
      gaps: { retention: 1 },
    },
    loader: { utilisation: 0.2, cpuShare: 0.1 },
  };
}

function document(results: readonly WorkloadResult[], node = "24.0.0"): BenchDocument {
  return {
    format: DOCUMENT_FORMAT,
    penstockVersion: "0.1.0",
    when: "2026-11-30T12:00:00.000Z",
    machine: { cores: 2, cpu: "a processor", memoryMib: 8_192, kernel: "linux 6.1", node },
    target: { url: "http://127.0.0.1:8080", penstockVersion: "0.1.0" },
    interrupted: false,
    noGatewayFigures: null,
    results,
  };
}

function saved(content: unknown): string {
  const path = join(folder, "saved.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

const compared = (then: Partial<Measures>, now: Partial<Measures>, tolerance = 20) =>
  compare(document([result("fan-out", now)]), readSaved(saved(document([result("fan-out", then)]))), tolerance).measures;

describe("a comparison", () => {
  it("says what is worse by more than the tolerance, either way round", () => {
    expect(compared({ cpuSecondsPerMillion: 10 }, { cpuSecondsPerMillion: 12.5 })).toEqual([
      { workload: "fan-out", label: "CPU s a million events", before: 10, now: 12.5, ratio: 1.25, isWorse: true },
    ]);
    expect(compared({ eventsPerSecond: 1_000 }, { eventsPerSecond: 700 })).toMatchObject([{ ratio: 0.7, isWorse: true }]);
    expect(compared({ cpuSecondsPerMillion: 10 }, { cpuSecondsPerMillion: 11.9 })).toMatchObject([{ isWorse: false }]);
    expect(compared({ cpuSecondsPerMillion: 10 }, { cpuSecondsPerMillion: 12.5 }, 30)).toMatchObject([{ isWorse: false }]);
    expect(compared({ eventsPerSecond: 1_000 }, { eventsPerSecond: 9_000 })).toMatchObject([{ isWorse: false }]);
  });

  it("takes no difference of a fraction of a millisecond for one, nor a single late event", () => {
    expect(compared({ latencyP50Ms: 0.2 }, { latencyP50Ms: 0.9 })).toMatchObject([{ isWorse: false }]);
    expect(compared({ latencyP50Ms: 2 }, { latencyP50Ms: 4 })).toMatchObject([{ isWorse: true }]);
    expect(compared({ latencyMaxMs: 2 }, { latencyMaxMs: 400 })).toMatchObject([{ isWorse: false }]);
  });

  it("leaves out what one of them does not have", () => {
    expect(compared({ cpuSecondsPerMillion: 10 }, { latencyP50Ms: 4 })).toEqual([]);
  });

  it.each([
    ["of other sizes", [result("fan-out", {}, "ok", 500)], "fan-out is not compared: readers was 500, and is 1000"],
    ["that is void", [result("fan-out", {}, "void")], "fan-out is not compared: the other one is void"],
    ["that is not there", [result("connect", {})], "fan-out is not compared: it is not in the file"],
  ])("does not compare with a workload %s, and says so", (_, results, note) => {
    const { measures, notes } = compare(
      document([result("fan-out", { latencyP50Ms: 1 })]),
      readSaved(saved(document(results))),
      20,
    );
    expect(measures).toEqual([]);
    expect(notes).toEqual([note]);
  });

  it("says that another machine was at work", () => {
    const { notes } = compare(document([]), readSaved(saved(document([], "22.19.0"))), 20);
    expect(notes).toEqual(["the other one ran with node 22.19.0, this one with 24.0.0: take no difference for the gateway's"]);
  });

  it.each(["no JSON", {}, { ...document([]), format: 99 }])("refuses a file that is no bench: %j", (content) => {
    expect(() => readSaved(saved(content))).toThrow("is no bench of this format");
  });

  it("refuses a file that is not there", () => {
    expect(() => readSaved(join(folder, "nowhere.json"))).toThrow("cannot be read (ENOENT)");
  });
});

describe("the report", () => {
  const colors = createColors(false);
  const large = {
    ...noMeasures(),
    connectsPerSecond: 12_345,
    eventsPerSecond: 123_456,
    latencyP50Ms: 0.6789,
    latencyMaxMs: 54_321,
  };
  const results = [result("fan-out", large, "ok", 45_000), result("many-runs", {}, "faulty"), result("connect", {}, "void")];
  const lines = reportLines({ ...document(results), interrupted: true, noGatewayFigures: "no answer" }, colors);

  it("fits into 100 columns, its numbers below each other", () => {
    for (const line of [
      ...lines.slice(1),
      ...comparisonLines(compare(document(results), readSaved(saved(document(results))), 20), 20, colors),
    ])
      expect(line.length, line).toBeLessThanOrEqual(100);
    const header = lines.find((line) => line.startsWith("workload"))!;
    const row = lines.find((line) => line.startsWith("fan-out"))!;
    for (const [head, value] of [
      ["readers", "45,000"],
      ["p50", "0.68"],
      ["max", "54,321"],
    ] as const)
      expect(row.indexOf(value) + value.length, head).toBe(header.indexOf(head) + head.length);
  });

  it("gives each verdict with its reasons, the gaps, and why figures are missing", () => {
    const text = lines.join("\n").replace(/\s+/g, " ");
    expect(text).toContain(
      "fan-out ok 50,000 events read, none lost, doubled or out of order; gaps told: 1 retention (7 events)",
    );
    expect(text).toContain("many-runs faulty events doubled: 3; and some more words");
    expect(text).toContain("No figures of the gateway's process: no answer.");
    expect(text).toContain("It was interrupted");
  });
});
