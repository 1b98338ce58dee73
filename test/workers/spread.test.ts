import { expect, test } from "vitest";
import { ratio, spread } from "./spread.ts";

test("connections spread evenly, and a worker that was started again fills as the others' streams age", {
  timeout: 120_000,
}, async () => {
  const { first, afterKill, afterAge } = await spread(4_000, 12);
  expect(ratio(first)).toBeLessThan(1.2);
  expect(ratio(afterKill)).toBeGreaterThan(1.2);
  expect(ratio(afterAge)).toBeLessThan(1.2);
});
