/** The long form of test/workers/churn.test.ts. */
import { expect, test } from "vitest";
import { churn, rise } from "../workers/churn.ts";

test("half an hour in which every fifth reader a minute is cut and comes back leaves memory level", {
  timeout: 2_400_000,
}, async () => {
  const found = await churn(1_800);
  console.log(JSON.stringify(found));
  expect(found.refused).toBe(0);
  expect(rise(found.heap)).toBeLessThan(0.03);
  expect(rise(found.resident)).toBeLessThan(0.02);
});
