/** How a subscriber hears that something is missing: each loss once, from its own last id on. */
import { previousId } from "../../protocol/event-id.ts";
import type { Gap } from "../broker/broker.ts";
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
export function meetPageGap(subscriber: Subscriber, page: Page): void {
  const { reason, from, to } = page.gap!;
  const told = subscriber.toldGap;
  const isSame = told !== null && told.reason === reason && told.from === from && told.to === to;
  if (isSame && (to !== null || (page.newest !== null && page.newest === subscriber.gapNewest))) return;
  subscriber.pendingGap = page.gap;
  subscriber.gapNewest = page.newest;
}

/** The next entry of the ring is a gap. */
export function meetRingGap(subscriber: Subscriber, mark: LogEntry, now: number): void {
  const gap = mark.gap!;
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
  const before = gap.to === null ? mark.newest : previousId(gap.to);
  subscriber.position = before === null ? null : { id: before, exact: gap.to === null };
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
