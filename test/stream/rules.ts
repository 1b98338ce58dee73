/** The promise, as rules on what one client saw. Each throws where it is broken. */
import { expect } from "vitest";
import { compareEventIds, type EventId, millisecondsOf } from "../../protocol/event-id.ts";
import { STRAGGLER_MS } from "../../protocol/wire.ts";
import type { ModelClient, Seen } from "./model-client.ts";
import type { ModelEvent, ModelStream } from "./model-stream.ts";

type SeenGap = Extract<Seen, { what: "gap" }>;

export function checkClient(client: ModelClient, stream: ModelStream): void {
  checkOrder(client);
  checkGaps(client, stream);
  checkEnd(client, stream);
  if (!client.ended) expectNoLoss(client, stream, stream.everything);
}

/** Ids rise between two rollback gaps, and no event comes twice between two. */
function checkOrder(client: ModelClient): void {
  let last: EventId = "0-0";
  let got = new Set<number>();
  for (const seen of client.seen) {
    if (seen.what === "event") {
      expect(compareEventIds(seen.id, last), `event ${seen.id} after ${last}`).toBeGreaterThan(0);
      expect(got.has(seen.n), `event ${seen.n} twice`).toBe(false);
      got.add(seen.n);
      last = seen.id;
    } else if (seen.what === "cursor") {
      expect(compareEventIds(seen.id, last), `cursor ${seen.id} after ${last}`).toBeGreaterThanOrEqual(0);
      last = seen.id;
    } else if (seen.what === "gap" && seen.gap.reason === "rollback") {
      last = "0-0";
      got = new Set();
    }
  }
}

/** A gap is told only where something was lost or cannot be shown not to have been, and once on a connection. */
function checkGaps(client: ModelClient, stream: ModelStream): void {
  let opened = 0;
  let before: Seen | null = null;
  for (const [index, seen] of client.seen.entries()) {
    if (seen.what === "open") opened = seen.step;
    if (seen.what === "gap") {
      const { reason, from, to } = seen.gap;
      const text = JSON.stringify(seen.gap);
      // One without an end may be told again, of more.
      if (before?.what === "gap" && to !== null) expect(JSON.stringify(before.gap), "the same gap twice").not.toBe(text);
      const held = from === null ? undefined : stream.everything.find((event) => event.id === from);
      if (reason === "retention") {
        const isUnprovable = held !== undefined && (seen.fromIsGone || held.lost);
        expect(isUnprovable || someIsMissing(client.seen.slice(0, index), seen, stream), `nothing was lost: ${text}`).toBe(true);
      } else if (reason === "rollback") {
        const isForeign = held !== undefined && !stream.has(held.id);
        expect(isForeign || stream.rolledBackAt >= opened, `nothing was rolled back: ${text}`).toBe(true);
      } else if (reason === "overflow" && from !== null && to !== null && stream.rolledBackAt < 0) {
        const between = stream.everything.filter((event) => isBetween(event.id, from, to));
        const stillThere = between.filter((event) => event.goneAt === null && !event.lost);
        expect(seen.gap.missed, text).toBeLessThanOrEqual(between.length);
        expect(seen.gap.missed, text).toBeGreaterThanOrEqual(stillThere.length);
      }
    }
    before = seen;
  }
}

/** Something between the gap's bounds is not there any more, and this client has not had it, unless by a page from before its deletion. */
function someIsMissing(before: readonly Seen[], { gap, published }: SeenGap, stream: ModelStream): boolean {
  const got = new Set(before.map((seen) => (seen.what === "event" ? seen.n : null)));
  const missing = stream.everything.filter(
    (event) => (event.goneAt !== null || event.lost) && event.n < published && (!got.has(event.n) || stream.deleted.has(event)),
  );
  // Of a lost branch or a former stream, ids say nothing of where the present one stands.
  return missing.some((event) => !stream.has(event.id) || isBetween(event.id, gap.from, gap.to));
}

/** One end, when the run has ended for certain; none, when it never had; and never before all that lay before it. */
function checkEnd(client: ModelClient, stream: ModelStream): void {
  const ends = client.seen.filter((seen) => seen.what === "end");
  expect(ends.length, "ends seen").toBeLessThanOrEqual(1);
  if (hasEnded(stream)) expect(ends.length, "ends seen of a run that has ended").toBe(1);
  const [end] = ends;
  if (end === undefined) return;
  const received = client.seen.filter((seen) => seen.what === "event").map((seen) => seen.n);
  const later = stream.everything.filter((event) => received.includes(event.n) && !event.lost);
  const candidates = stream.everything.filter(
    (entry) => entry.n < 0 && entry.at <= end.step && !later.some((event) => isBeyond(event.id, entry.id)),
  );
  expect(candidates.length, "an end without a cause").toBeGreaterThan(0);
  // A gateway that lags may know of an earlier end only.
  expectNoLoss(client, stream, stream.everything.slice(0, stream.everything.indexOf(candidates[0]!)));
}

/** True when no gateway can be in doubt: the end is kept or marked, and nothing ever came later than a straggler, or under lower ids. */
export function hasEnded(stream: ModelStream): boolean {
  const entry = stream.log.findLast((event) => event.n < 0 && event.goneAt === null)?.id ?? null;
  const ids = [entry, stream.markIsTimely ? stream.mark : null].filter((id) => id !== null).sort(compareEventIds);
  const ended = stream.everything.find((event) => event.id === ids.at(-1));
  if (ended === undefined) return false;
  const later = stream.everything.slice(stream.everything.indexOf(ended) + 1);
  return later.every((event) => !isBeyond(event.id, ended.id) && compareEventIds(event.id, ended.id) > 0);
}

/** Each event that history held behind the client's place was seen, or lies inside a gap that was told. */
function expectNoLoss(client: ModelClient, stream: ModelStream, events: readonly ModelEvent[]): void {
  const { kinds, since } = client.options;
  const seen = client.seen.slice(client.seen.findLastIndex((item) => item.what === "open" && item.fresh));
  const got = new Set(seen.map((item) => (item.what === "event" ? item.n : null)));
  // The other two reasons say that nothing is known to be lost.
  const isLoss = (item: Seen) => item.what === "gap" && item.gap.reason !== "outage" && item.gap.reason !== "shutdown";
  const gaps = seen.filter(isLoss) as SeenGap[];
  for (const event of events) {
    if (event.n < 0 || event.lost || got.has(event.n)) continue;
    if (kinds.length > 0 && !kinds.includes(event.kind)) continue;
    if (since !== null && compareEventIds(event.id, since) <= 0) continue;
    if (isForgotten(seen, event, stream) || isFoundTooLate(seen, event, stream)) continue;
    if (since === null && isBeforeStart(client, seen, event)) continue;
    if (gaps.some((gap) => covers(gap, event, stream))) continue;
    expect.fail(`event ${event.n} (${event.id}) was neither delivered nor inside a gap`);
  }
}

/** Who names no place begins at what was kept when it got one, or at the last few of it. */
function isBeforeStart({ placed, options }: ModelClient, seen: readonly Seen[], event: ModelEvent): boolean {
  if (placed === null) return true;
  if (event.goneAt !== null && event.goneAt <= placed.step) return true;
  return options.tail !== null && event.n < placed.published && !seen.some((item) => item.what === "event" && item.n < event.n);
}

/** Of a stream that expired before this client had an id of it, nobody knows that it was there. */
function isForgotten(seen: readonly Seen[], event: ModelEvent, stream: ModelStream): boolean {
  if (event.goneAt === null || event.era === stream.era) return false;
  const first = seen.find((item) => item.what === "event" || item.what === "cursor");
  return first === undefined || event.goneAt <= first.step;
}

/** What was deleted from the middle may be found when a client that has passed it is gone. */
function isFoundTooLate(seen: readonly Seen[], event: ModelEvent, stream: ModelStream): boolean {
  if (!stream.deleted.has(event)) return false;
  const passed = seen.findIndex((item) => item.what === "end" || ("id" in item && compareEventIds(item.id, event.id) > 0));
  return passed >= 0 && seen.slice(passed).some((item) => item.what === "open" || item.what === "end");
}

function covers({ gap, published }: SeenGap, event: ModelEvent, stream: ModelStream): boolean {
  const { reason, from, to } = gap;
  // A position of another branch or stream says nothing of where the present one stands, so the gap spans all before its end.
  const isForeign = from !== null && !stream.has(from) && stream.everything.some((other) => other.id === from);
  const spansAll = reason === "rollback" || isForeign;
  // Nor do the ids of what is in no stream any more.
  if (spansAll && !stream.has(event.id)) return event.n < published;
  if (to === null ? event.n >= published : compareEventIds(event.id, to) >= 0) return false;
  return spansAll || from === null || compareEventIds(event.id, from) > 0;
}

function isBetween(id: EventId, from: EventId | null, to: EventId | null): boolean {
  return (from === null || compareEventIds(id, from) > 0) && (to === null || compareEventIds(id, to) < 0);
}

function isBeyond(id: EventId, endedId: EventId): boolean {
  return millisecondsOf(id) > millisecondsOf(endedId) + STRAGGLER_MS;
}
