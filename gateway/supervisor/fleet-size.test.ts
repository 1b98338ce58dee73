import { describe, expect, it } from "vitest";
import { FleetSize, workerRange } from "./fleet-size.ts";

const GIB = 2 ** 30;

describe("how many workers there may be", () => {
  it.each([
    ["auto", "auto", 4, 8 * GIB, [4, 4]],
    ["auto", "auto", 4, 600 * 2 ** 20, [2, 2]],
    ["auto", "auto", 4, 64 * 2 ** 20, [1, 1]],
    ["auto", "auto", 1.5, 8 * GIB, [2, 2]],
    [3, 3, 2, GIB / 8, [3, 3]],
    [1, "auto", 4, 8 * GIB, [1, 4]],
    [6, "auto", 4, 8 * GIB, [6, 6]],
    ["auto", 2, 4, 8 * GIB, [2, 2]],
    [2, 8, 4, 8 * GIB, [2, 8]],
  ] as const)("%s to %s on %d cores with %d bytes", (min, max, cores, memoryBytes, [least, most]) => {
    expect(workerRange({ min, max }, { cores, memoryBytes })).toEqual({ min: least, max: most });
  });
});

describe("how many workers there are", () => {
  it("one more where they hold more than their aim on average, up to the most", () => {
    const size = new FleetSize({ min: 1, max: 3 }, 100);
    expect(size.next(1, 100, 0)).toBe("stay");
    expect(size.next(1, 101, 0)).toBe("grow");
    expect(size.next(3, 1_000, 0)).toBe("stay");
  });

  it("one less where the others have had room for all for a minute, down to the least", () => {
    const size = new FleetSize({ min: 2, max: 4 }, 100);
    expect(size.next(3, 100, 0)).toBe("stay");
    expect(size.next(3, 101, 30_000)).toBe("stay");
    expect(size.next(3, 100, 59_000)).toBe("stay");
    expect(size.next(3, 100, 118_000)).toBe("stay");
    expect(size.next(3, 100, 119_000)).toBe("retire");
    expect(size.next(2, 0, 300_000)).toBe("stay");
  });
});
