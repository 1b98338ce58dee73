import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareEventIds, type EventId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { Gap } from "../broker.ts";
import { findLoss, type Place, type Sight } from "./proof.ts";
import type { StreamInfo } from "./stream-info.ts";

const NONE: EventId[] = [];

function place(id: EventId, more: Partial<Place> = {}): Place {
  return { id, exact: true, added: null, told: ZERO_ID, ...more };
}

/** What Redis 7 shows of a stream that holds `ids`, read behind `at`. */
function sight(at: EventId, ids: EventId[], info: Partial<StreamInfo> = {}, limit = 256): Sight {
  const behind = ids.filter((id) => compareEventIds(id, at) > 0);
  return {
    info: {
      length: ids.length,
      lastId: ids.at(-1) ?? ZERO_ID,
      added: ids.length,
      maxDeletedId: ZERO_ID,
      firstId: ids[0] ?? null,
      ...info,
    },
    found: ids.includes(at),
    behind: behind.slice(0, limit),
    more: behind.length > limit,
  };
}

const retention = (from: EventId | null, to: EventId | null, missed: number | null): Gap => ({
  reason: "retention",
  from,
  to,
  missed,
});
const rollback = (from: EventId | null, to: EventId | null): Gap => ({ reason: "rollback", from, to, missed: null });
const old = { added: null, maxDeletedId: null };

describe("a place that a reader held", () => {
  test.each<[string, Place, Sight, Gap | null]>([
    ["is there, with all behind it", place("2-0"), sight("2-0", ["1-0", "2-0", "3-0"]), null],
    ["is the newest", place("3-0"), sight("3-0", ["1-0", "2-0", "3-0"]), null],
    ["was trimmed, and others with it", place("1-0"), sight("1-0", ["3-0", "4-0"], { added: 4 }), retention("1-0", "3-0", null)],
    [
      "was trimmed, and the count says how many",
      place("1-0", { added: 1 }),
      sight("1-0", ["3-0"], { added: 3 }),
      retention("1-0", "3-0", 1),
    ],
    ["was trimmed, and nothing behind it", place("2-0", { added: 2 }), sight("2-0", ["3-0"], { added: 3 }), null],
    ["was the last one, and was trimmed", place("3-0"), sight("3-0", [], { lastId: "3-0", added: 3 }), null],
    [
      "is in a stream trimmed to nothing",
      place("1-0", { added: 1 }),
      sight("1-0", [], { lastId: "3-0", added: 3 }),
      retention("1-0", null, 2),
    ],
    [
      "is in a stream that is gone",
      place("3-0"),
      { info: null, found: false, behind: NONE, more: false },
      retention("3-0", null, null),
    ],
    ["is later than the stream", place("9-0"), sight("9-0", ["1-0", "2-0"]), rollback("9-0", null)],
    ["never was in the stream", place("2-5"), sight("2-5", ["1-0", "2-0", "3-0"]), rollback("2-5", "3-0")],
    [
      "was deleted, perhaps with others",
      place("2-0"),
      sight("2-0", ["1-0", "4-0"], { added: 4, maxDeletedId: "3-0" }),
      retention("2-0", "4-0", null),
    ],
    [
      "was deleted itself, and nothing later",
      place("2-0"),
      sight("2-0", ["1-0", "3-0"], { added: 3, maxDeletedId: "2-0" }),
      null,
    ],
    [
      "is there, but something behind it was deleted",
      place("1-0"),
      sight("1-0", ["1-0", "2-0", "4-0"], { added: 4, maxDeletedId: "3-0" }),
      retention("1-0", "4-0", null),
    ],
    [
      "is there, and that deletion was told",
      place("1-0", { told: "3-0" }),
      sight("1-0", ["1-0", "2-0", "4-0"], { added: 4, maxDeletedId: "3-0" }),
      null,
    ],
    [
      "was counted, and a counted one is missing",
      place("1-0", { added: 1 }),
      sight("1-0", ["1-0", "2-0", "4-0"], { added: 4, maxDeletedId: "3-0" }),
      retention("1-0", "4-0", 1),
    ],
    [
      "is older than all that is kept, of which something was deleted too",
      place("1-0"),
      sight("1-0", ["3-0", "5-0"], { added: 5, maxDeletedId: "4-0" }),
      retention("1-0", "5-0", null),
    ],
    [
      "is older than all that is kept, of which something was deleted too, and the count says how many",
      place("1-0", { added: 1 }),
      sight("1-0", ["3-0", "5-0"], { added: 5, maxDeletedId: "4-0" }),
      retention("1-0", "5-0", 2),
    ],
    [
      "was deleted and counted, and so was something behind others",
      place("2-0", { added: 2 }),
      sight("2-0", ["1-0", "3-0", "5-0"], { added: 5, maxDeletedId: "4-0" }),
      retention("2-0", "5-0", 1),
    ],
    [
      "is before everything, of a stream that lost its beginning and something behind it",
      place(ZERO_ID, { added: 0 }),
      sight(ZERO_ID, ["2-0", "4-0"], { added: 4, maxDeletedId: "3-0" }),
      retention(null, "4-0", 2),
    ],
    [
      "is before everything, of a stream whose newest was deleted",
      place(ZERO_ID, { added: 0 }),
      sight(ZERO_ID, ["1-0"], { lastId: "2-0", added: 2, maxDeletedId: "2-0" }),
      retention(null, null, 1),
    ],
    [
      "was lost while others took the ids around it",
      place("5-0", { added: 5 }),
      sight("5-0", ["1-0", "2-0", "4-9", "6-0"], { added: 6 }),
      rollback("5-0", "6-0"),
    ],
    [
      "is in a stream replaced by a later one",
      place("3-0", { added: 9 }),
      sight("3-0", ["7-0", "8-0"], { added: 2 }),
      retention("3-0", "7-0", null),
    ],
    [
      "is before everything, of a stream that lost its beginning",
      place(ZERO_ID, { added: 0 }),
      sight(ZERO_ID, ["3-0"], { added: 3 }),
      retention(null, "3-0", 2),
    ],
    ["was trimmed, on an old server", place("1-0"), sight("1-0", ["3-0"], old), retention("1-0", "3-0", null)],
    ["is there, on an old server", place("1-0"), sight("1-0", ["1-0", "3-0"], old), null],
    ["is missing inside, on an old server", place("2-0"), sight("2-0", ["1-0", "3-0"], old), rollback("2-0", "3-0")],
  ])("%s", (_, at, seen, gap) => {
    expect(findLoss(at, seen)).toEqual(gap);
  });
});

describe("a time", () => {
  const since = (id: EventId): Place => place(id, { exact: false });
  test.each<[string, Place, Sight, Gap | null]>([
    ["inside the stream", since("2-5"), sight("2-5", ["1-0", "2-0", "3-0"]), null],
    ["before the stream began", since("0-5"), sight("0-5", ["1-0", "2-0"]), null],
    ["before what was trimmed", since("0-5"), sight("0-5", ["3-0"], { added: 3 }), retention("0-5", "3-0", null)],
    [
      "before what was deleted",
      since("1-5"),
      sight("1-5", ["1-0", "3-0"], { added: 3, maxDeletedId: "2-0" }),
      retention("1-5", "3-0", null),
    ],
    [
      "before what was trimmed, and what was deleted behind that",
      since("0-5"),
      sight("0-5", ["3-0", "5-0"], { added: 5, maxDeletedId: "4-0" }),
      retention("0-5", "5-0", null),
    ],
    ["ahead of the stream", since("9-0"), sight("9-0", ["1-0"]), null],
    ["of a run that has not begun", since("9-0"), { info: null, found: false, behind: NONE, more: false }, null],
    ["before the oldest of an old server", since("0-5"), sight("0-5", ["3-0"], old), null],
  ])("%s", (_, at, seen, gap) => {
    expect(findLoss(at, seen)).toEqual(gap);
  });
});

/** A stream as Redis 7 keeps its counts: XTRIM from the oldest, XDEL anywhere, and only XDEL remembered by an id. */
class Model {
  ids: EventId[] = [];
  added = 0;
  maxDeletedId: EventId = ZERO_ID;
  lastId: EventId = ZERO_ID;

  add(): void {
    this.added++;
    this.lastId = `${this.added}-0`;
    this.ids.push(this.lastId);
  }

  trim(count: number): void {
    this.ids.splice(0, count);
  }

  delete(index: number): void {
    const [id] = this.ids.splice(index % Math.max(this.ids.length, 1), 1);
    if (id !== undefined && compareEventIds(id, this.maxDeletedId) > 0) this.maxDeletedId = id;
  }

  see(at: EventId, limit: number): Sight {
    const { added, maxDeletedId, lastId } = this;
    return sight(at, this.ids, { added, maxDeletedId, lastId }, limit);
  }
}

const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.constant({ kind: "add" as const, count: 1 }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("trim" as const), count: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), count: fc.nat(20) }) },
  ),
  { maxLength: 30 },
);

function play(model: Model, moves: readonly { kind: "add" | "trim" | "delete"; count: number }[]): void {
  for (const { kind, count } of moves) {
    if (kind === "add") model.add();
    else if (kind === "trim") model.trim(count);
    else model.delete(count);
  }
}

describe("any adding, trimming and deleting", () => {
  test("a counted place hears of a loss exactly when there is one, and of its size", () => {
    fc.assert(
      fc.property(steps, steps, (before, after) => {
        const model = new Model();
        model.add();
        play(model, before);
        // A reader at the head has read everything up to here.
        const at = place(model.lastId, { added: model.added, exact: model.ids.includes(model.lastId), told: model.maxDeletedId });
        play(model, after);
        const kept = model.ids.filter((id) => compareEventIds(id, at.id) > 0).length;
        const lost = model.added - at.added! - kept;
        const gap = findLoss(at, model.see(at.id, 256));
        expect(gap === null ? 0 : gap.missed).toBe(lost);
        if (gap !== null) expect(gap).toMatchObject({ reason: "retention", from: at.id });
        expect(lostOutside(model, at.id, gap)).toEqual([]);
      }),
    );
  });

  test("a place that a client brings never hears nothing when something behind it was lost", () => {
    fc.assert(
      fc.property(steps, steps, fc.nat(), fc.integer({ min: 1, max: 5 }), (before, after, chosen, limit) => {
        const model = new Model();
        model.add();
        play(model, before);
        fc.pre(model.ids.length > 0);
        const id = model.ids[chosen % model.ids.length]!;
        const alreadyGone =
          Number.parseInt(id, 10) + model.ids.filter((other) => compareEventIds(other, id) > 0).length < model.added;
        fc.pre(!alreadyGone);
        play(model, after);
        const seen = model.see(id, limit);
        const upTo = seen.more ? seen.behind.at(-1)! : `${model.added + 1}-0`;
        const added = Array.from({ length: model.added }, (_, index) => `${index + 1}-0`);
        const lost = added.some((other) => isBetween(other, id, upTo) && !model.ids.includes(other));
        const gap = findLoss(place(id), seen);
        if (lost) expect(gap).toMatchObject({ reason: "retention", from: id });
        if (gap !== null) expect(gap.reason).toBe("retention");
        if (!seen.more) expect(lostOutside(model, id, gap)).toEqual([]);
      }),
    );
  });
});

/** Entries behind `id` that are gone and do not lie inside the gap. */
function lostOutside(model: Model, id: EventId, gap: Gap | null): EventId[] {
  const added = Array.from({ length: model.added }, (_, index) => `${index + 1}-0`);
  const gone = added.filter((other) => compareEventIds(other, id) > 0 && !model.ids.includes(other));
  return gone.filter((other) => gap === null || (gap.to !== null && compareEventIds(other, gap.to) >= 0));
}

function isBetween(id: EventId, from: EventId, to: EventId): boolean {
  return compareEventIds(id, from) > 0 && compareEventIds(id, to) < 0;
}
