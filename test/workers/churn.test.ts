import { expect, test } from "vitest";
import { churn, rise } from "./churn.ts";

test("three minutes in which every fifth reader a minute is cut and comes back leave memory level", {
  timeout: 300_000,
}, async () => {
  const found = await churn(180);
  expect(found.refused).toBe(0);
  expect(found.opened).toBeGreaterThan(2_900);
  expect(rise(found.heap)).toBeLessThan(0.1);
  expect(rise(found.resident)).toBeLessThan(0.05);
});
