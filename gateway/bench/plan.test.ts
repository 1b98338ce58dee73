import { describe, expect, it } from "vitest";
import { benchTarget, runPath } from "./bench-target.ts";
import { checkDescriptors } from "./machine.ts";
import { plansOf, WORKLOADS } from "./plan.ts";
import { explainRefusal } from "./refusal-hint.ts";
import { CONNECTIONS_PER_ADDRESS, sourceAddress } from "./source-address.ts";

describe("the plan", () => {
  it("has every workload with `all`, and each once, in one order", () => {
    expect(plansOf(["all"], {}).map(({ workload }) => workload)).toEqual(WORKLOADS);
    expect(plansOf(["replay, connect", "replay"], {}).map(({ workload }) => workload)).toEqual(["connect", "replay"]);
  });

  it("spreads readers so that a gateway takes them as it comes", () => {
    for (const { readers, runs } of plansOf(["all"], { readers: 1_234 })) expect(readers / runs).toBeLessThanOrEqual(100);
  });

  it("takes the sizes that are given, where a workload has such a size", () => {
    const [connect, fanOut] = plansOf(["connect", "fan-out"], { rate: 7, seconds: 2, readers: 30, runs: 3 });
    expect(connect).toMatchObject({ readers: 30, runs: 3, rate: 0, seconds: 0 });
    expect(fanOut).toMatchObject({ readers: 30, runs: 3, rate: 7, seconds: 2, bytes: 200 });
  });

  it("refuses what cannot be", () => {
    expect(() => plansOf(["fanout"], {})).toThrow('--workload "fanout" is none; choose of connect, fan-out');
    expect(() => plansOf(["connect"], { readers: 2, runs: 3 })).toThrow("--runs is more than --readers");
    expect(() => plansOf(["stalled"], { readers: 1 })).toThrow("--readers");
  });
});

describe("the target", () => {
  it.each(["http://127.0.0.1:8080", "http://127.8.9.1", "http://localhost:1", "http://[::1]:8080/zenml/", "https://127.0.0.1"])(
    "may be this machine: %s",
    (base) => {
      expect(benchTarget(base, {}, false).isLoopback).toBe(true);
    },
  );

  it.each([
    "http://10.0.0.1",
    "http://runs.example.org",
    "http://127.0.0.1.example.org",
    "http://localhost.example.org",
    "http://[::2]",
  ])("may be another one only with --remote: %s", (base) => {
    expect(() => benchTarget(base, {}, false)).toThrow("give --remote");
    expect(benchTarget(base, {}, true).isLoopback).toBe(false);
  });

  it("keeps the path prefix", () => {
    const target = benchTarget("https://[::1]/zenml/", {}, false);
    expect(target).toMatchObject({ base: "https://[::1]/zenml", secure: true, host: "::1", port: 443 });
    expect(runPath(target, "r", "/end")).toBe("/zenml/api/v1/runs/r/end");
    expect(runPath(benchTarget("http://localhost", {}, false), "r", "/end")).toBe("/api/v1/runs/r/end");
  });
});

it("says before it begins that it may not open so many connections, and what to run", () => {
  expect(() => checkDescriptors(1_000, 1_024)).toThrow("ulimit -n 1100");
  checkDescriptors(900, 1_024);
  checkDescriptors(1_000_000, null);
});

describe("a refusal", () => {
  const [plan] = plansOf(["fan-out"], { readers: 500, runs: 2 });
  it.each([
    [503, '{"detail":"This run has as many subscribers as it may."}', "reader 11 was refused: 503: This run has as many"],
    [503, '{"detail":"This run has as many subscribers as it may."}', "--max-subscribers-per-stream 250"],
    [503, '{"detail":"This server holds as many streams as it may."}', "streaming.maxConnectionsPerWorker"],
    [403, '{"detail":"No."}', "PENSTOCK_TOKEN"],
    [0, "connect ECONNREFUSED 127.0.0.1:1", "connect ECONNREFUSED 127.0.0.1:1. The gateway may be full"],
    [0, "connect EADDRNOTAVAIL 127.0.0.1:1", "no free port"],
    [404, "<h1>Not here</h1>", "404: <h1>Not here</h1>"],
  ])("names the way out: %i %s", (status, text, part) => {
    expect(explainRefusal({ status, text }, plan!, 10)).toContain(part);
  });
});

describe.runIf(process.platform === "linux")("many readers", () => {
  it("come from as many addresses of this machine as have ports for them, other processes' from others", () => {
    const addresses = Array.from({ length: 60_000 }, (_, index) => sourceAddress("127.0.0.1", index, 60_000, 1_234));
    expect(new Set(addresses).size).toBe(3);
    for (const address of new Set(addresses))
      expect(addresses.filter((other) => other === address).length).toBeLessThanOrEqual(CONNECTIONS_PER_ADDRESS);
    for (const address of addresses) expect(address).toMatch(/^127\.\d+\.\d+\.[123]$/);
    expect(sourceAddress("127.0.0.1", 0, 60_000, 1_235)).not.toBe(addresses[0]);
  });

  it("are the kernel's matter where they are few, or cannot have another address", () => {
    expect(sourceAddress("127.0.0.1", 10, 1_000)).toBeUndefined();
    expect(sourceAddress("::1", 10, 20_000)).toBeUndefined();
    expect(sourceAddress("10.0.0.1", 10, 20_000)).toBeUndefined();
  });
});
