import { beforeEach, describe, expect, it } from "vitest";
import { MemoryLog } from "../../test/support/memory-log.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { CALM_MS, type Pressure } from "./ladder.ts";
import { type Brakes, Overload } from "./overload.ts";

const CALM: Pressure = { memory: 0.1, loop_lag: 0, connections: 0 };

/** Notes what is asked of it. */
class NotedBrakes implements Brakes {
  readonly calls: string[] = [];
  shrinkRings(on: boolean): void {
    this.calls.push(`rings ${on}`);
  }
  widenCoalescing(on: boolean): void {
    this.calls.push(`coalescing ${on}`);
  }
  dropSlowest(share: number): number {
    this.calls.push(`drop ${share}`);
    return 3;
  }
  refuseNew(on: boolean): void {
    this.calls.push(`refuse ${on}`);
  }
}

let pressure: Pressure;
let now: number;
let brakes: NotedBrakes;
let log: MemoryLog;
let metrics: ReturnType<typeof createMetrics>;
let overload: Overload;

function begin(enabled = true): void {
  const probe = { read: () => pressure, describe: (signal: string) => `${signal} is used up` };
  const holdBackBodies = (on: boolean) => void brakes.calls.push(`bodies ${on}`);
  overload = new Overload({ brakes, probe, metrics, log, enabled, holdBackBodies });
}

/** Looks after so long, and again, for the first look at much memory only collects garbage. */
function look(next: Partial<Pressure>, pauseMs = 250): void {
  pressure = { ...CALM, ...next };
  now += pauseMs;
  overload.look(now, 0, 250);
  overload.look(now, 0, 250);
}

beforeEach(() => {
  pressure = CALM;
  now = 1_000_000;
  brakes = new NotedBrakes();
  log = new MemoryLog();
  metrics = createMetrics({ processMetrics: false });
  begin();
});

describe("a worker that runs out of memory", () => {
  it("puts on the brakes one after the other, and lets go of them in calm", () => {
    look({ memory: 0.75 });
    expect(brakes.calls).toEqual(["rings true"]);
    look({ memory: 0.97 });
    expect(brakes.calls.slice(1)).toEqual(["coalescing true", "refuse true", "bodies true"]);
    expect(overload).toMatchObject({ level: 5, isReady: false, detail: "overloaded: memory is used up" });
    brakes.calls.length = 0;
    look({});
    expect(brakes.calls).toEqual([]);
    look({}, CALM_MS);
    expect(brakes.calls).toEqual(["refuse false", "bodies false", "coalescing false", "rings false"]);
    expect(overload).toMatchObject({ level: 0, isReady: true, detail: "not overloaded" });
  });

  it("drops the slowest in rounds, the first when the steps before have had time to show", () => {
    look({ memory: 0.86 });
    look({ memory: 0.86 }, 1_999);
    expect(brakes.calls).not.toContain("drop 0.01");
    look({ memory: 0.86 }, 1);
    look({ memory: 0.86 }, 1_000);
    look({ memory: 0.86 }, 1_000);
    expect(brakes.calls.filter((call) => call === "drop 0.01")).toHaveLength(2);
    expect(log.entries.at(-1)).toMatchObject({ level: "warn", fields: { dropped: 3 } });
  });

  it("collects garbage before it does anything, and not again for a while", () => {
    pressure = { ...CALM, memory: 0.97 };
    overload.look(now, 0, 250);
    expect(brakes.calls).toEqual([]);
    overload.look(now + 250, 0, 250);
    expect(overload.level).toBe(5);
  });

  it("has one log line and one count a step, and shows where it stands", () => {
    look({ memory: 0.81 });
    look({}, 250);
    look({}, CALM_MS);
    expect(log.entries.map(({ level, fields }) => [level, (fields as { step: string }).step])).toEqual([
      ["warn", "shrink_rings"],
      ["warn", "widen_coalescing"],
      ["info", "widen_coalescing"],
      ["info", "shrink_rings"],
    ]);
    expect(log.entries[1]!.fields).toEqual({
      overloadLevel: 2,
      step: "widen_coalescing",
      signal: "memory",
      share: 0.81,
      now: "memory is used up",
    });
    expect(metrics.value("penstock_overload_steps_total", "shrink_rings")).toBe(1);
    expect(metrics.value("penstock_overload_steps_total", "drop_slowest")).toBe(0);
    expect(metrics.value("penstock_overload_level")).toBe(0);
    look({ loop_lag: 1.2 });
    expect(metrics.value("penstock_overload_level")).toBe(4);
    expect(metrics.value("penstock_overload_pressure", "loop_lag")).toBe(1.2);
  });
});

it("a worker that may not shed load shows how short it is, and does nothing", () => {
  begin(false);
  look({ memory: 1, loop_lag: 9 });
  look({ memory: 1, loop_lag: 9 }, 5_000);
  expect(brakes.calls).toEqual([]);
  expect(log.entries).toEqual([]);
  expect(overload.isReady).toBe(true);
  expect(metrics.value("penstock_overload_pressure", "memory")).toBe(1);
});
