/** May this subscriber advance now, and how far? Moves one subscriber along the ring, and writes what it is owed. */
import { compareEventIds, type EventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Position } from "../broker/broker.ts";
import { END_FRAME } from "./frame.ts";
import { meetRingGap, tellGap } from "./gaps.ts";
import { END, GAP, type LogEntry } from "./log-entry.ts";
import { end, send, sendCursor } from "./outlet.ts";
import { advanceInHistory, STOPPED } from "./replay.ts";
import { BEGINNING } from "./ring.ts";
import { isLate } from "./ring-gaps.ts";
import { CLOSED, HAD_BY_PAGE, HISTORY, LIVE, NOT_WANTED, type Subscriber, WAS_GONE } from "./subscriber.ts";
import { release } from "./tending.ts";

/** Then others have their turn: a reader that takes whole pages without a stop must not hold them up. */
const MAX_WRITES = 16;

/** Writes until the subscriber has everything, its socket is full, or history has to be read first. Returns how many writes that took. */
export function deliver(subscriber: Subscriber, now: number): number {
  if (subscriber.leaving !== null) {
    release(subscriber, subscriber.leaving);
    return 1;
  }
  let writes = 0;
  while (!subscriber.blocked && subscriber.state !== CLOSED) {
    if (writes >= MAX_WRITES) {
      subscriber.run.host.serveSoon(subscriber);
      break;
    }
    if (subscriber.pendingGap !== null) {
      tellGap(subscriber, now);
      writes++;
      continue;
    }
    let advanced = STOPPED;
    if (subscriber.state === LIVE) advanced = advanceInRing(subscriber, now);
    else if (subscriber.state === HISTORY) advanced = advanceInHistory(subscriber, now);
    if (advanced === STOPPED) break;
    writes += advanced;
  }
  return writes;
}

/** Decides where a new subscriber begins: in the ring when it covers the place, else in history. The run must be known. */
export function place(subscriber: Subscriber): void {
  if (subscriber.tail !== null) {
    placeAtTail(subscriber, subscriber.tail);
    return;
  }
  const { ring, host } = subscriber.run;
  const { position } = subscriber;
  const offset = position === null ? ring.oldest() : ring.placeAfter(position.id, position.exact);
  if (offset === null) {
    subscriber.goBack(position);
    return;
  }
  subscriber.goLive(offset);
  if (position?.exact === true) subscriber.lastIdIsReal = true;
  if (subscriber.resuming) {
    subscriber.resuming = false;
    host.counters.resumed("ring");
  }
}

/** `?tail=N`: in the ring if it has so many, else the broker has to say where that is. */
function placeAtTail(subscriber: Subscriber, count: number): void {
  const { ring, host } = subscriber.run;
  let offset = ring.next;
  let found = 0;
  while (offset > ring.start && found < count) {
    offset--;
    const { type } = ring.at(offset);
    if (type !== GAP && type !== END) found++;
  }
  if (found === count) {
    subscriber.goLive(offset);
    subscriber.lastId = ring.idBefore(offset);
    subscriber.lastIdIsReal = subscriber.lastId !== null;
    // Cut before the first event it would ask for `tail` again, and miss what came between: it gets a position at once.
    if (count === 0) subscriber.behindGap = subscriber.lastIdIsReal;
  } else if (ring.after === BEGINNING) {
    subscriber.goLive(ring.oldest()!);
  } else {
    subscriber.awaiting = true;
    host.findTail(subscriber, count);
  }
}

function advanceInRing(subscriber: Subscriber, now: number): number {
  const { ring } = subscriber.run;
  if (subscriber.place < ring.first) {
    fellOff(subscriber, now);
    return 0;
  }
  if (subscriber.skipThrough !== null && !skip(subscriber, subscriber.skipThrough)) return 0;
  if (subscriber.place >= ring.next) return caughtUp(subscriber, now);
  const batch = ring.batches.get(ring, subscriber.place, subscriber.filter);
  if (batch.mark === null) return send(subscriber, batch, now);
  subscriber.place = batch.to;
  meetRingGap(subscriber, batch.mark, now);
  return 1;
}

/** Passes over what this reader is not to get. False when it has to ask the broker instead. */
function skip(subscriber: Subscriber, through: EventId): boolean {
  const { ring } = subscriber.run;
  const offset = ring.skipThrough(subscriber.place, through);
  const next = offset < ring.next ? ring.at(offset) : null;
  if (goesAnotherWay(subscriber, through, offset, next)) {
    subscriber.goBack(placeToAskFrom(subscriber));
    return false;
  }
  subscriber.place = offset;
  if (next !== null && next.type !== GAP) subscriber.skipThrough = null;
  return true;
}

/** True when the ring does not go on from where this reader is, so far as can be seen. */
function goesAnotherWay({ run, place, skipAs }: Subscriber, through: EventId, offset: number, next: LogEntry | null): boolean {
  if (skipAs === WAS_GONE) return offset > place;
  if (next === null) return false;
  // How much of what a gap spans lies behind this reader's place, the ring cannot tell; the broker can, of a held place or a part.
  if (next.type === GAP) return next.gap!.reason !== "rollback" && (skipAs === HAD_BY_PAGE || next.gap!.to !== null);
  return skipAs === HAD_BY_PAGE && !run.ring.reaches(offset, through);
}

/** It has everything there is. */
function caughtUp(subscriber: Subscriber, now: number): number {
  if (subscriber.behindGap) {
    subscriber.behindGap = false;
    subscriber.toldGap = null;
    const { lastId, gapNewest } = subscriber;
    if (gapNewest !== null && (lastId === null || compareEventIds(gapNewest, lastId) > 0)) {
      subscriber.lastId = gapNewest;
      subscriber.lastIdIsReal = true;
    }
    subscriber.gapNewest = null;
    if (subscriber.lastId !== null && subscriber.lastIdIsReal) {
      subscriber.owesCursor = true;
      sendCursor(subscriber, now);
      if (subscriber.blocked) return 1;
    }
  }
  const { run } = subscriber;
  if (run.end.isDue(now)) {
    if (!hasAllBeforeEnd(subscriber)) {
      subscriber.goBack(placeToAskFrom(subscriber));
      return 0;
    }
    end(subscriber, END_FRAME, "end");
  } else if (subscriber.owesCursor) run.owesCursors(now);
  return STOPPED;
}

/** The ring may lag behind what a page told of the end, and so may a page; the broker has the last word. */
function hasAllBeforeEnd({ run, skipThrough, skipAs, provenEnd }: Subscriber): boolean {
  if (provenEnd === run.end.id) return true;
  return run.end.isReached && (skipThrough === null || skipAs !== HAD_BY_PAGE);
}

/** Its place is no longer in the ring. */
function fellOff(subscriber: Subscriber, now: number): void {
  const { ring, settings } = subscriber.run;
  // Where it stood behind a rollback means nothing behind the next one.
  if (subscriber.place < ring.epoch) subscriber.position = null;
  const position = placeToAskFrom(subscriber);
  // The broker is not asked of what lies before its last id; and without one, it cannot say what is missing behind it.
  const from = Math.max(subscriber.place, subscriber.leftAt);
  const unheard = ring.gaps?.between(from, ring.next, subscriber.lastId === null ? () => true : isLate) ?? null;
  if (unheard !== null) {
    subscriber.pendingGap = unheard;
    subscriber.goBack(position);
    subscriber.leftAt = ring.next;
    return;
  }
  if (settings.slowConsumer === "disconnect") {
    release(subscriber, "slow");
    return;
  }
  // Across a rollback, or another gap that fell off as well, only the broker can say what is missing.
  const lastGap = Math.max(ring.epoch - 1, ring.gaps?.lastEvicted ?? -1);
  const isKnown = subscriber.place > lastGap && subscriber.skipThrough === null;
  if (settings.slowConsumer !== "gap" || !isKnown) {
    subscriber.goBack(position);
    return;
  }
  let first = ring.first;
  while (first < ring.next && ring.at(first).type === GAP) first++;
  const to = first < ring.next ? ring.at(first).id : null;
  subscriber.pendingGap = { reason: "overflow", from: subscriber.lastId, to, missed: ring.first - subscriber.place };
  tellGap(subscriber, now);
  subscriber.place = ring.first;
  subscriber.lastId = ring.after;
  subscriber.lastIdIsReal = true;
}

/** What to ask the broker for when the ring cannot serve a reader any more. */
function placeToAskFrom({ skipThrough, skipAs, lastId, lastIdIsReal, position }: Subscriber): Position {
  if (skipThrough !== null && skipAs !== NOT_WANTED) return { id: skipThrough, exact: true };
  if (lastId !== null) return { id: lastId, exact: lastIdIsReal };
  // It joined before the first entry, or stands behind a rollback: all that was trimmed since is missing, and will be told.
  return position ?? { id: ZERO_ID, exact: false };
}
