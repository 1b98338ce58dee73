import { describe, expect, test } from "vitest";
import { DuplicateFilter, isEndPayload, takeEntries } from "./entries.ts";

const row = (id: string, ...fields: string[]) => [Buffer.from(id), fields.map((field) => Buffer.from(field))];

describe("entries", () => {
  test("the payload is the field p, wherever it stands; an entry without one has none", () => {
    const rows = [row("1-0", "p", "a"), row("2-0", "x", "y", "p", "b"), row("3-0", "x", "y")];
    const { entries } = takeEntries(rows, 0, new DuplicateFilter(10));
    expect(entries.map(({ id, payload }) => [id, payload && String(payload)])).toEqual([
      ["1-0", "a"],
      ["2-0", "b"],
      ["3-0", null],
    ]);
  });

  test("an entry with the key and index of another is dropped, and counted", () => {
    const rows = [
      row("1-0", "p", "a", "k", "key", "i", "0"),
      row("2-0", "p", "b", "k", "key", "i", "1"),
      row("3-0", "p", "a", "k", "key", "i", "0"),
      row("4-0", "p", "a", "k", "other", "i", "0"),
    ];
    const filter = new DuplicateFilter(10);
    const first = takeEntries(rows, 0, filter);
    expect(first.entries.map(({ id }) => id)).toEqual(["1-0", "2-0", "4-0"]);
    expect(first.dropped).toBe(1);
    const late = [row("5-0", "p", "b", "k", "key", "i", "1")];
    expect(takeEntries(late, 0, filter).entries).toEqual([]);
    // After a rollback the first one is gone.
    expect(takeEntries(late, 0, filter, 1).entries).toHaveLength(1);
  });

  test("an entry that is read again is not a repeat of itself", () => {
    const filter = new DuplicateFilter(10);
    const rows = [row("1-0", "p", "a", "k", "key", "i", "0")];
    takeEntries(rows, 0, filter);
    expect(takeEntries(rows, 0, filter).entries).toHaveLength(1);
  });

  test("what went by long ago is forgotten", () => {
    const filter = new DuplicateFilter(100);
    const rows = Array.from({ length: 101 }, (_, index) => row(`${index + 1}-0`, "p", "a", "k", "key", "i", `${index}`));
    takeEntries(rows, 0, filter);
    expect(takeEntries([row("998-0", "p", "a", "k", "key", "i", "100")], 0, filter).entries).toHaveLength(0);
    expect(takeEntries([row("999-0", "p", "a", "k", "key", "i", "0")], 0, filter).entries).toHaveLength(1);
  });
});

test.each([
  ['{"type":"end"}', true],
  ['{"type": "end", "by": "someone"}', true],
  ['{"type":"event","event":{"kind":"end"}}', false],
  ['"end"', false],
  ["{", false],
  ["", false],
])("%s ends a run: %s", (text, isEnd) => {
  expect(isEndPayload(Buffer.from(text))).toBe(isEnd);
});
