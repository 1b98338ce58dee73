import { afterEach, expect, it } from "vitest";
import { MemoryLog } from "../../test/support/memory-log.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { TableWorld } from "../../test/worker/table-world.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { Overload } from "./overload.ts";
import { Probe } from "./probe.ts";

const GIB = 2 ** 30;
const OPTIONS = {
  memoryLimitBytes: 64 * GIB,
  workers: 2,
  maxLoopLagMs: 20,
  maxConnections: 10,
  connections: () => 4,
  blocked: () => 0,
};

let close: (() => Promise<void>) | null = null;
afterEach(() => close?.());

it("tells of each signal how much of it is used, in words as well", () => {
  const probe = new Probe(OPTIONS);
  const pressure = probe.read(0, 250);
  expect(pressure.connections).toBe(0.4);
  expect(pressure.loop_lag).toBe(0);
  expect(pressure.memory).toBeGreaterThan(0);
  expect(pressure.memory).toBeLessThan(0.1);
  expect(probe.describe("connections")).toBe("4 of 10 connections are open");
  expect(probe.describe("memory")).toMatch(/^\d % of 32768 MiB of memory is used$/);
  for (let n = 0; n < 100; n++) probe.read(1_000, 1_250);
  expect(probe.describe("loop_lag")).toBe("the event loop is 80 ms late, and 20 ms are much");
});

it("a worker whose loop lags refuses new streams, and takes them again when it is in time", { timeout: 60_000 }, async () => {
  const world = new TableWorld();
  const metrics = createMetrics({ processMetrics: false });
  const overload = new Overload({ brakes: world.table, probe: new Probe(OPTIONS), metrics, log: new MemoryLog(), enabled: true });
  close = async () => {
    overload.close();
    await world.close();
  };
  overload.start();
  await waitFor("too much to do", () => {
    for (const until = performance.now() + 150; performance.now() < until; );
    return overload.level >= 4;
  });
  expect(() => world.table.claim("run")).toThrow("too much to do");
  await waitFor("time again", () => overload.level === 0, 30_000);
  world.open("run");
  expect(world.table.connections).toBe(1);
});
