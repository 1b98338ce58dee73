import { describe, expect, it } from "vitest";
import { LoopLag } from "./loop-lag.ts";

const WORST_MS = 2_000;

/** What is shown after these latenesses of a timer that is due every 250 ms. */
function lagAfter(...latenesses: number[]): number {
  const lag = new LoopLag(WORST_MS);
  for (const late of latenesses) lag.sample(late, 250 + late);
  return lag.milliseconds;
}

describe("the loop's lag", () => {
  it("is near nothing on a loop that is in time", () => {
    expect(lagAfter(...Array<number>(100).fill(1))).toBeCloseTo(1, 1);
  });

  it("follows a loop that is late all the time within seconds", () => {
    expect(lagAfter(...Array<number>(8).fill(800))).toBeGreaterThan(500);
    expect(lagAfter(...Array<number>(50).fill(800))).toBeCloseTo(800, 0);
  });

  it("does not take one long pause for too much work", () => {
    expect(lagAfter(2_000)).toBeLessThan(WORST_MS / 4);
    expect(lagAfter(60_000)).toBeLessThan(WORST_MS / 4);
  });

  it("is forgotten within seconds when the loop is in time again", () => {
    expect(lagAfter(...Array<number>(20).fill(600), ...Array<number>(40).fill(0))).toBeLessThan(30);
  });

  it("is never below zero, also where a timer fires early", () => {
    expect(lagAfter(-1, -1)).toBe(0);
  });
});
