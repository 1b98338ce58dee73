import { expect, test } from "vitest";
import { Sweep } from "./sweep.ts";

test.each([1, 7, 100, 12_345])("each of %i items is met once a period, spread over its ticks", (count) => {
  const items = Array.from({ length: count }, (_, index) => index);
  const met = new Array<number>(count).fill(0);
  const sweep = new Sweep(5_000);
  sweep.start(0);
  let most = 0;
  for (let now = 100; now <= 10_000; now += 100) {
    let inTick = 0;
    sweep.tick(items, now, (item) => {
      met[item]!++;
      inTick++;
    });
    most = Math.max(most, inTick);
  }
  expect(Math.min(...met)).toBeGreaterThanOrEqual(1);
  expect(Math.max(...met)).toBeLessThanOrEqual(3);
  expect(most).toBeLessThanOrEqual(Math.ceil(count / 50) + 1);
});

test("a list that shrinks is gone round all the same", () => {
  const sweep = new Sweep(100);
  sweep.start(0);
  const items = [1, 2, 3, 4];
  const met: number[] = [];
  sweep.tick(items, 75, (item) => met.push(item));
  items.length = 1;
  sweep.tick(items, 200, (item) => met.push(item));
  items.length = 0;
  sweep.tick(items, 400, (item) => met.push(item));
  expect(met).toEqual([1, 2, 3, 1]);
});
