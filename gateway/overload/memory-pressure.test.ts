import { describe, expect, it } from "vitest";
import { collectGarbage } from "./garbage.ts";
import { MemoryPressure, reserveOf, usedInGroup } from "./memory-pressure.ts";

const MIB = 2 ** 20;
const NO_STREAMS = { connections: () => 0, blocked: () => 0 };

describe("memory with a limit of its own", () => {
  it("is this process's, against its part of what all workers may use", () => {
    const limitBytes = 64 * 1_024 * MIB;
    const use = new MemoryPressure({ limitBytes, workers: 4, ...NO_STREAMS }).read();
    expect(use.limitBytes).toBe(limitBytes / 4);
    expect(Math.abs(use.usedBytes - process.memoryUsage.rss())).toBeLessThan(16 * MIB);
  });

  it("is used by what lives, and not by what has been let go of", () => {
    const limitBytes = process.memoryUsage.rss() + 128 * MIB;
    const pressure = new MemoryPressure({ limitBytes, workers: 1, ...NO_STREAMS });
    const before = pressure.read().usedBytes;
    // Small blocks: much of them stays resident when they are freed.
    let blocks: Buffer[] | null = Array.from({ length: 200_000 }, () => Buffer.allocUnsafeSlow(400).fill(1));
    expect(blocks.length).toBe(200_000);
    const full = pressure.read().usedBytes;
    expect(full - before).toBeGreaterThan(64 * MIB);
    blocks = null;
    collectGarbage();
    collectGarbage();
    expect(pressure.read().usedBytes).toBeLessThan(full - 48 * MIB);
  });
});

describe("what is resident and yet free", () => {
  const residence = { residentBytes: 343 * MIB, bytesAtStart: 44 * MIB, liveBytes: 6 * MIB, connections: 0, blocked: 0 };

  it("is what goes beyond what is needed, with room to spare", () => {
    expect(reserveOf(residence)).toBe((343 - 44 - 9) * MIB);
    expect(reserveOf({ ...residence, liveBytes: 220 * MIB })).toBe(0);
  });

  it("is less where connections, and streams that are not read, have memory of the engine", () => {
    expect(reserveOf({ ...residence, connections: 10_240 })).toBe((343 - 44 - 9 - 40) * MIB);
    expect(reserveOf({ ...residence, connections: 10_240, blocked: 10_240 })).toBe(0);
  });
});

describe("what is used in a group", () => {
  it("is less by what all workers have in reserve", () => {
    expect(usedInGroup(1_200 * MIB, 4, { residentBytes: 300 * MIB, reserveBytes: 200 * MIB })).toBe(400 * MIB);
    expect(usedInGroup(100 * MIB, 1, { residentBytes: 120 * MIB, reserveBytes: 40 * MIB })).toBe(60 * MIB);
  });

  it("is not less by what workers would have that do not run now", () => {
    expect(usedInGroup(900 * MIB, 8, { residentBytes: 800 * MIB, reserveBytes: 200 * MIB })).toBeGreaterThan(650 * MIB);
  });
});
