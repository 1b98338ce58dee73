/** What a subscriber needs in its own time: heartbeat, stall, expiry, age, and the ways in which a stream is let go. */
import type { GapReason } from "../../protocol/wire.ts";
import { gapFrame, PING_FRAME, retryLine, SHUTDOWN_END_FRAME, STREAM_FAILED_FRAME, UNAUTHORIZED_FRAME } from "./frame.ts";
import { end, writeBehindCursor } from "./outlet.ts";
import type { CloseReason } from "./sink.ts";
import { CLOSED, HAD_BY_PAGE, type Leave, LIVE, NEVER, type Subscriber } from "./subscriber.ts";

/** When to look after a new subscriber for the first time, in milliseconds of the run's clock. */
export function firstLook(subscriber: Subscriber, now: number): number {
  return nextLook(subscriber, now, now + subscriber.run.settings.heartbeatMs / 2);
}

/** Returns when to look again; infinity when the stream is over. */
export function tend(subscriber: Subscriber, now: number): number {
  const { settings, host } = subscriber.run;
  if (subscriber.state === CLOSED) return Number.POSITIVE_INFINITY;
  if (subscriber.expiresAt !== null && host.wallNow() >= subscriber.expiresAt) {
    end(subscriber, UNAUTHORIZED_FRAME, "expired");
    return Number.POSITIVE_INFINITY;
  }
  if (isOld(subscriber, now) && release(subscriber, "age")) return Number.POSITIVE_INFINITY;
  if (subscriber.blocked) {
    const stalledAt = subscriber.blockedSince + settings.stallMs;
    if (now < stalledAt) return nextLook(subscriber, now, stalledAt);
    subscriber.sink.abort();
    subscriber.run.remove(subscriber, "stalled");
    return Number.POSITIVE_INFINITY;
  }
  if (subscriber.state === LIVE && subscriber.skipThrough !== null && subscriber.skipAs === HAD_BY_PAGE) {
    // The ring has still not got what a page had: a rollback may lie between.
    subscriber.goBack({ id: subscriber.skipThrough, exact: true });
    host.serveSoon(subscriber);
  }
  if (now >= heartbeatAt(subscriber)) {
    host.counters.heartbeat();
    writeBehindCursor(subscriber, PING_FRAME, now);
  }
  return nextLook(subscriber, now, heartbeatAt(subscriber));
}

/** A clean end that loses nothing: the due cursor, when to come back, the end of the body. False when it has to wait for a full socket. */
export function release(subscriber: Subscriber, how: Leave): boolean {
  if (subscriber.state === CLOSED) return true;
  if (subscriber.blocked) {
    subscriber.leaving ??= how;
    return false;
  }
  if (how === "zenml") endWithGap(subscriber, "shutdown", SHUTDOWN_END_FRAME, "shutdown");
  else end(subscriber, retryLine(subscriber.run.host.retryMs()), how);
  return true;
}

/** Ends it now, full socket or not: what it lacks is announced. */
export function cut(subscriber: Subscriber, frames: "penstock" | "zenml"): void {
  if (subscriber.state === CLOSED) return;
  const last = frames === "zenml" ? SHUTDOWN_END_FRAME : retryLine(subscriber.run.host.retryMs());
  endWithGap(subscriber, "shutdown", last, "cut");
}

/** Ends it because its full socket takes memory that is short: cut as well, but it may not hold on to that for long. */
export function drop(subscriber: Subscriber): void {
  if (subscriber.state === CLOSED) return;
  endWithGap(subscriber, "overflow", retryLine(subscriber.run.host.retryMs()), "overload", DROP_STALL_MS);
}

/** Ends it because something here went wrong; a reconnect with its last id goes on. Throws what its sink throws. */
export function fail(subscriber: Subscriber): void {
  if (subscriber.state === CLOSED) return;
  // First, for the sink may be what went wrong.
  subscriber.run.remove(subscriber, "failed");
  subscriber.sink.end(STREAM_FAILED_FRAME);
}

function endWithGap(subscriber: Subscriber, why: GapReason, last: Uint8Array, reason: CloseReason, stallMs?: number): void {
  subscriber.run.host.counters.gap(why, null);
  const gap = gapFrame({ reason: why, from: subscriber.lastId, to: null, missed: null });
  end(subscriber, Buffer.concat([gap, last]), reason, stallMs);
}

/** A stream that carried an event within the last minute may be silent for the whole interval, others for half of it. */
function heartbeatAt({ run, lastWriteAt, lastEventAt }: Subscriber): number {
  const { heartbeatMs } = run.settings;
  return Math.min(lastWriteAt + heartbeatMs, Math.max(lastWriteAt + heartbeatMs / 2, lastEventAt + RECENT_MS));
}

function isOld({ ageAt }: Subscriber, now: number): boolean {
  return ageAt !== NEVER && now >= ageAt;
}

function nextLook(subscriber: Subscriber, now: number, at: number): number {
  const { ageAt, expiresAt, run } = subscriber;
  let next = at;
  if (ageAt !== NEVER && ageAt > now) next = Math.min(next, ageAt);
  if (expiresAt !== null) next = Math.min(next, now + Math.max(0, expiresAt - run.host.wallNow()));
  return Math.max(next, now + 1);
}

/** A stream that carried an event so recently is not idle. */
const RECENT_MS = 60_000;
/** Time for a client that still reads to get the gap. */
const DROP_STALL_MS = 5_000;
