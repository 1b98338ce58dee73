/** What goes out to one subscriber, and the cursor that it may be owed before. The only callers of a sink. */
import type { EventId } from "../../protocol/event-id.ts";
import type { Batch } from "./batch.ts";
import { cursorFrame } from "./frame.ts";
import type { CloseReason } from "./sink.ts";
import { CLOSED, type Subscriber } from "./subscriber.ts";

/** Writes whole frames. A socket that is full then stops the subscriber where it stands. */
export function write(subscriber: Subscriber, bytes: Uint8Array, now: number): void {
  subscriber.lastWriteAt = now;
  if (subscriber.sink.write(bytes)) return;
  subscriber.blocked = true;
  subscriber.blockedSince = now;
  subscriber.letGoOfPage();
  subscriber.run.host.counters.backpressure();
}

/** Moves a subscriber over the entries of a batch, and writes what its filter let through. Returns the number of writes. */
export function send(subscriber: Subscriber, batch: Batch, now: number): number {
  subscriber.place = batch.to;
  subscriber.lastId = batch.lastId;
  subscriber.lastIdIsReal = true;
  subscriber.gapNewest = null;
  subscriber.toldGap = null;
  if (batch.bytes === null) {
    subscriber.owesCursor ||= batch.owesCursor;
    return 0;
  }
  subscriber.owesCursor = batch.owesCursor;
  subscriber.behindGap = false;
  if (batch.events > 0) subscriber.lastEventAt = now;
  subscriber.run.host.counters.delivered(batch.events, batch.bytes.length);
  write(subscriber, batch.bytes, now);
  return 1;
}

/** Writes frames behind the cursor that is owed. */
export function writeBehindCursor(subscriber: Subscriber, frame: Uint8Array, now: number): void {
  const cursor = takeOwedCursor(subscriber);
  write(subscriber, cursor === null ? frame : Buffer.concat([cursor, frame]), now);
}

/** Tells the client of the last entry that its filter held back. */
export function sendCursor(subscriber: Subscriber, now: number): void {
  if (subscriber.state === CLOSED || subscriber.blocked || !subscriber.owesCursor) return;
  write(subscriber, takeOwedCursor(subscriber)!, now);
}

/** Ends the body cleanly behind a last frame, as `Sink.end` says, and takes the subscriber off its run. */
export function end(subscriber: Subscriber, last: Uint8Array, reason: CloseReason, stallMs?: number): void {
  // Behind the true end of a run nobody comes back.
  const cursor = reason === "end" ? null : takeOwedCursor(subscriber);
  subscriber.sink.end(cursor === null ? last : Buffer.concat([cursor, last]), stallMs);
  subscriber.run.remove(subscriber, reason);
}

function takeOwedCursor(subscriber: Subscriber): Buffer | null {
  if (!subscriber.owesCursor) return null;
  subscriber.owesCursor = false;
  return cursorFrame(subscriber.lastId as EventId);
}
