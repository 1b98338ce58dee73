/** How a subscriber hears that something is missing: each loss once, from its own last id on. */
import { compareEventIds, type EventId, previousId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Gap, Position } from "../broker/broker.ts";
import { cursorFrame, gapFrame } from "./frame.ts";
import type { LogEntry } from "./log-entry.ts";
import { write, writeBehindCursor } from "./outlet.ts";
import type { Page } from "./page.ts";
import { isLate } from "./ring-gaps.ts";
import { CLOSED, type Subscriber } from "./subscriber.ts";

/** Writes the gap that is pending. */
export function tellGap(subscriber: Subscriber, now: number): void {
  const gap = subscriber.pendingGap!;
  subscriber.pendingGap = null;
  subscriber.toldGap = gap;
  subscriber.behindGap = true;
  subscriber.run.host.counters.gap(gap.reason, gap.missed);
  writeBehindCursor(subscriber, gapFrame(gap), now);
}

/** The page at the subscriber's place begins with a gap. It may be one that was told and is read again; of one without an end there may be more. */
export function meetPageGap(subscriber: Subscriber, gap: Gap, newest: EventId | null): void {
  const { reason, from, to } = gap;
  const told = subscriber.toldGap;
  const isSame = told !== null && told.reason === reason && told.from === from && told.to === to;
  if (isSame && (to !== null || (newest !== null && newest === subscriber.gapNewest))) return;
  subscriber.pendingGap = gap;
  subscriber.gapNewest = newest;
}

/** What a page lacks before its first entry, as the broker says, or as is plain when the entry before which the subscriber stands is gone. */
export function gapBefore({ position, lastId }: Subscriber, page: Page): Gap | null {
  if (page.gap !== null || !(position instanceof Before)) return page.gap;
  const first = page.next === 0 ? null : page.at(0).id;
  return first === position.entry ? null : { reason: "retention", from: lastId, to: first, missed: null };
}

/** The next entry of the ring is a gap. */
export function meetRingGap(subscriber: Subscriber, mark: LogEntry, now: number): void {
  const gap = mark.gap!;
  if (isHeard(subscriber, mark)) return;
  if (gap.reason !== "rollback") {
    subscriber.pendingGap = fromOwnPlace(subscriber, mark, gap);
    subscriber.gapNewest = mark.newest;
    return;
  }
  subscriber.pendingGap = { ...gap, from: subscriber.lastId };
  subscriber.gapNewest = mark.newest;
  tellGap(subscriber, now);
  // Its last id names nothing in what follows. Should it fall behind before an entry has passed, this is where it stood.
  subscriber.lastId = null;
  subscriber.lastIdIsReal = false;
  subscriber.skipThrough = null;
  subscriber.pagedTo = null;
  if (gap.to !== null) subscriber.position = new Before(gap.to);
  else subscriber.position = mark.newest === null ? null : { id: mark.newest, exact: true };
}

/** Back in the ring: what was found late meanwhile may lie among what it had got from there before, and then no page has told of it. */
export function hearWhatWasFoundMeanwhile(subscriber: Subscriber): void {
  const { run, leftAt, place } = subscriber;
  subscriber.pagedTo = subscriber.lastId;
  const { gaps, epoch } = run.ring;
  if (gaps === null || leftAt < 0) return;
  subscriber.pendingGap = gaps.between(Math.max(leftAt, epoch), place, (gap) => isLate(gap) && !isInPages(subscriber, gap));
}

/** Once an outage: what comes later may be late, and nothing is known to be lost. */
export function tellOutage(subscriber: Subscriber, outage: number, now: number): void {
  if (subscriber.state === CLOSED || subscriber.blocked || subscriber.outageTold === outage) return;
  subscriber.outageTold = outage;
  const gap: Gap = { reason: "outage", from: subscriber.lastId, to: null, missed: null };
  subscriber.run.host.counters.gap("outage", null);
  const frames: Uint8Array[] = [gapFrame(gap)];
  if (subscriber.lastId !== null && subscriber.lastIdIsReal) {
    frames.push(cursorFrame(subscriber.lastId));
    subscriber.owesCursor = false;
  }
  write(subscriber, Buffer.concat(frames), now);
}

function fromOwnPlace(subscriber: Subscriber, mark: LogEntry, gap: Gap): Gap {
  // What is missing lay before the entries that came last, and so before this reader's last id.
  if (isLate(mark)) return gap;
  // The count is the ring's. Who is ahead of it lacks less, nobody knows how much less.
  const missed = subscriber.skipThrough === null ? gap.missed : null;
  return { ...gap, from: subscriber.lastId ?? gap.from, missed };
}

/** True for a gap that a reader knows of, though it has come back to a place before it: since it left the ring, or by pages. */
function isHeard(subscriber: Subscriber, mark: LogEntry): boolean {
  const { place, leftAt, pagedFrom } = subscriber;
  if (!isLate(mark)) return place <= leftAt && pagedFrom === null;
  return place <= leftAt || isInPages(subscriber, mark);
}

/** True when all that a gap spans lies in what pages had, and told, if it was missing. */
function isInPages({ pagedFrom, pagedTo }: Subscriber, mark: LogEntry): boolean {
  const { from, to } = mark.gap!;
  if (pagedTo === null || to === null || compareEventIds(to, pagedTo) > 0) return false;
  return pagedFrom === null || (from !== null && compareEventIds(from, pagedFrom) >= 0);
}

/** The place just before an entry. For the broker that is a mere time, of which it cannot say what is missing behind it. */
class Before implements Position {
  readonly id: EventId;
  readonly exact = false;
  readonly entry: EventId;

  constructor(entry: EventId) {
    this.id = previousId(entry) ?? ZERO_ID;
    this.entry = entry;
  }
}
