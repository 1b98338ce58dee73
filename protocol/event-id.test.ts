import fc from "fast-check";
import { expect, test } from "vitest";
import { compareEventIds, previousId } from "./event-id.ts";

test.each([
  ["0-0", null],
  ["0-1", "0-0"],
  ["1-0", "0-18446744073709551615"],
  ["1700000000000-10", "1700000000000-9"],
  ["1700000000000-9007199254740993", "1700000000000-9007199254740992"],
  ["1700000000000-18446744073709551615", "1700000000000-18446744073709551614"],
  ["18446744073709551615-0", "18446744073709551614-18446744073709551615"],
])("before %s comes %s", (id, previous) => {
  expect(previousId(id)).toBe(previous);
});

test("the previous id is less, and nothing lies between", () => {
  const half = fc.bigInt({ min: 0n, max: 18446744073709551615n });
  fc.assert(
    fc.property(half, half, (milliseconds, sequence) => {
      const id = `${milliseconds}-${sequence}`;
      const previous = previousId(id);
      if (previous === null) return id === "0-0";
      const [before, last] = previous.split("-").map(BigInt) as [bigint, bigint];
      const isNext = last === 18446744073709551615n ? before + 1n === milliseconds && sequence === 0n : last + 1n === sequence;
      return isNext && compareEventIds(previous, id) < 0;
    }),
  );
});
