import { expect, it } from "vitest";
import { BackOff } from "./back-off.ts";

it("a worker that ends again and again is started later and later, up to half a minute; one that lived long at once", () => {
  const backOff = new BackOff();
  const waits = Array.from({ length: 9 }, () => backOff.ended(1_000, () => 1));
  expect(waits).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  expect(backOff.ended(1_000, () => 0)).toBe(15_000);
  expect(backOff.ended(60_000)).toBe(0);
});
