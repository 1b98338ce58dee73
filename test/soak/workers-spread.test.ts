/** The long form of test/workers/spread.test.ts: the limit of open files of this process bounds the number. */
import { expect, test } from "vitest";
import { ratio, spread } from "../workers/spread.ts";

test("15,000 connections on four workers", { timeout: 600_000 }, async () => {
  const found = await spread(15_000, 60);
  console.log(JSON.stringify(found));
  expect(ratio(found.first)).toBeLessThan(1.2);
  expect(ratio(found.afterAge)).toBeLessThan(1.2);
});
