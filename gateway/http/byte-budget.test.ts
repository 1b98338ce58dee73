import { expect, test } from "vitest";
import { ByteBudget } from "./byte-budget.ts";

test("a budget that is held back gives no more than that, keeps what is held, and is whole again afterwards", () => {
  const budget = new ByteBudget(100);
  expect(budget.take(60)).toBe(true);
  budget.holdBackTo(20);
  expect(budget.take(1)).toBe(false);
  budget.give(60);
  expect(budget.take(20)).toBe(true);
  expect(budget.take(1)).toBe(false);
  budget.holdBackTo(null);
  expect(budget.take(80)).toBe(true);
  expect(budget.take(1)).toBe(false);
  budget.holdBackTo(1_000);
  expect(budget.take(1), "never more than was set").toBe(false);
});
