import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareEventIds } from "../../protocol/event-id.ts";
import { EVENT, gapEntry, LogEntry } from "./log-entry.ts";
import { BEGINNING, Ring } from "./ring.ts";
import { isLate } from "./ring-gaps.ts";

function entry(id: string, bytes = 10): LogEntry {
  return new LogEntry(EVENT, id, Buffer.alloc(bytes), "token", null, null, null, null);
}

function ringOf(count: number, max = 100): Ring {
  const ring = new Ring(max, 1_000_000);
  ring.after = BEGINNING;
  for (let n = 1; n <= count; n++) ring.push(entry(`1000-${n}`));
  return ring;
}

describe("the ring", () => {
  it("orders ids of one millisecond by number, also beyond 2^53", () => {
    const ring = new Ring(100, 1_000_000);
    for (const sequence of ["8", "9", "10", "9007199254740993", "9007199254740994"])
      ring.push(entry(`1700000000000-${sequence}`));
    expect(ring.placeAfter("1700000000000-9", true)).toBe(2);
    expect(ring.placeAfter("1700000000000-9007199254740993", true)).toBe(4);
  });

  it("takes a reader on at the last entry it dropped, but not before", () => {
    const ring = ringOf(12, 8);
    expect(ring.placeAfter("1000-4", true)).toBe(ring.first);
    expect(ring.placeAfter("1000-3", true)).toBeNull();
    expect(ring.oldest()).toBeNull();
  });

  it("asks the broker about an id that is no entry, and takes a time that it covers", () => {
    const ring = ringOf(5);
    expect(ring.placeAfter("999-0", true)).toBeNull();
    expect(ring.placeAfter("999-0", false)).toBe(0);
    expect(ring.placeAfter("1000-6", false)).toBeNull();
    expect(ring.placeAfter("0-0", false)).toBe(0);
  });

  it("does not know ids of before a rollback any more", () => {
    const ring = ringOf(5);
    ring.push(gapEntry({ reason: "rollback", from: "1000-5", to: "1000-4", missed: null }, "1000-5", "1000-4"));
    ring.push(entry("1000-4"));
    expect(ring.has("1000-5")).toBe(false);
    expect(ring.placeAfter("1000-2", true)).toBeNull();
    expect(ring.placeAfter("1000-4", true)).toBe(7);
  });

  it("tells a reader that stands before a lost stretch, and asks the broker about one inside it", () => {
    const ring = ringOf(3);
    ring.push(gapEntry({ reason: "retention", from: "1000-3", to: "1000-7", missed: 3 }, "1000-3", "1000-7"));
    ring.push(entry("1000-7"));
    expect(ring.placeAfter("1000-3", true)).toBe(3);
    expect(ring.at(3).gap?.missed).toBe(3);
    expect(ring.placeAfter("1000-5", false)).toBeNull();
  });

  it("asks the broker about a place behind a gap that spans further than the entries that followed it", () => {
    const ring = ringOf(3, 5);
    ring.push(gapEntry({ reason: "retention", from: "1000-3", to: "1000-7", missed: 2 }, "1000-3", "1000-9"));
    for (const id of ["1000-4", "1000-7"]) ring.push(entry(id));
    expect(ring.placeAfter("1000-3", true)).toBe(3);
    expect(ring.placeAfter("1000-4", true)).toBeNull();
    expect(ring.placeAfter("1000-7", true)).toBe(6);
    // Also when the gap itself has been dropped.
    for (let n = 8; n < 11; n++) ring.push(entry(`1000-${n}`));
    expect(ring.first).toBe(4);
    expect(ring.placeAfter("1000-4", true)).toBeNull();
    expect(ring.placeAfter("1000-7", true)).toBe(6);
  });

  it("takes on who holds what stood for the head at a gap with nothing behind it", () => {
    const ring = ringOf(3);
    ring.push(gapEntry({ reason: "retention", from: "1000-3", to: null, missed: 2 }, "1000-3", "1000-5"));
    expect(ring.placeAfter("1000-5", true)).toBe(4);
    ring.push(entry("1000-6"));
    expect(ring.placeAfter("1000-5", true)).toBe(4);
    expect(ring.placeAfter("1000-4", true)).toBeNull();
  });

  it("knows the losses that were found late and that a reader has not come by", () => {
    const ring = ringOf(5, 3);
    const late = (from: number, to: number) =>
      gapEntry({ reason: "retention", from: `1000-${from}`, to: `1000-${to}`, missed: 1 }, ring.newest ?? "", ring.newest);
    expect(ring.gaps).toBeNull();
    ring.push(late(1, 3));
    ring.push(entry("1000-6"));
    ring.push(late(5, 6));
    for (let n = 7; n < 12; n++) ring.push(entry(`1000-${n}`));
    expect(ring.gaps!.between(5, ring.next, isLate)).toMatchObject({ from: "1000-1", to: "1000-6" });
    expect(ring.gaps!.between(6, ring.next, isLate)).toMatchObject({ from: "1000-5", to: "1000-6" });
    expect(ring.gaps!.between(8, ring.next, isLate)).toBeNull();
    expect(ring.gaps!.between(5, 6, isLate)).toMatchObject({ from: "1000-1", to: "1000-3" });
  });

  it("begins behind what was deleted from a tail", () => {
    const ring = new Ring(100, 1_000_000);
    ring.begin({ complete: false, entries: [], after: null, newest: "1000-9", endedId: null });
    expect(ring.placeAfter("1000-9", true)).toBe(0);
    const deleted = new Ring(100, 1_000_000);
    const entries = [{ id: "1000-5", payload: null }];
    deleted.begin({ complete: false, entries, after: "1000-2", newest: "1000-5", endedId: null, deletedUpTo: "1000-4" });
    deleted.push(entry("1000-5"));
    expect(deleted.placeAfter("1000-2", true)).toBeNull();
    expect(deleted.placeAfter("1000-4", true)).toBe(0);
  });

  it("stays within its entries and bytes, and keeps the newest whatever its size", () => {
    const ring = new Ring(16, 2_000);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 60 }), (sizes) => {
        for (const size of sizes) {
          const id = `${2000 + ring.next}-0`;
          ring.push(entry(id, size));
          expect(ring.next - ring.first).toBeLessThanOrEqual(16);
          expect(ring.bytes <= 2_000 || ring.next - ring.first === 1).toBe(true);
          expect(ring.at(ring.next - 1).id).toBe(id);
          for (let offset = ring.first + 1; offset < ring.next; offset++) {
            expect(compareEventIds(ring.at(offset).id, ring.at(offset - 1).id)).toBeGreaterThan(0);
          }
        }
      }),
    );
  });

  it("gives its memory back when it is told to shrink, and goes on", () => {
    const ring = ringOf(20);
    ring.shrink(0);
    expect(ring.bytes).toBe(0);
    expect(ring.placeAfter("1000-20", true)).toBe(ring.next);
    ring.push(entry("1000-21"));
    expect(ring.placeAfter("1000-20", true)).toBe(ring.next - 1);
  });
});
