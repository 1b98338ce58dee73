/** May this subscriber advance now, and how far? Moves one subscriber of a run along, and writes what it is owed. */
import { compareEventIds, type EventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Gap, Position } from "../broker/broker.ts";
import type { Batch } from "./batch.ts";
import { cursorFrame, END_FRAME, gapFrame, PING_FRAME, retryLine, SHUTDOWN_END_FRAME, UNAUTHORIZED_FRAME } from "./frame.ts";
import { GAP } from "./log-entry.ts";
import type { Page } from "./page.ts";
import { BEGINNING } from "./ring.ts";
import type { Run } from "./run.ts";
import type { CloseReason } from "./sink.ts";
import { CLOSED, HISTORY, LIVE, type Subscriber, WAITING } from "./subscriber.ts";

export class Delivery {
  readonly #run: Run;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Decides where a new subscriber begins: in the ring when it covers the place, else in history. The run must be known. */
  place(subscriber: Subscriber): void {
    if (subscriber.tail !== null && !this.#placeAtTail(subscriber, subscriber.tail)) return;
    if (subscriber.state !== WAITING) return;
    const { ring } = this.#run;
    const position = subscriber.position;
    const place = position !== null ? ring.placeAfter(position.id, position.exact) : ring.after === BEGINNING ? ring.start : null;
    if (place === null) {
      subscriber.state = HISTORY;
      return;
    }
    this.#goLive(subscriber, place);
    if (position?.exact === true) subscriber.lastIdIsReal = true;
    if (subscriber.resuming) {
      subscriber.resuming = false;
      this.#run.host.counters.resumed("ring");
    }
  }

  /** Writes until the subscriber has everything, its socket is full, or history has to be read first. */
  deliver(subscriber: Subscriber, now: number): void {
    while (subscriber.state !== CLOSED && !subscriber.blocked) {
      if (subscriber.pendingGap !== null) this.#tellGap(subscriber, now);
      else if (subscriber.state === HISTORY) {
        if (!this.#advanceInHistory(subscriber, now)) return;
      } else if (subscriber.state === LIVE) {
        if (!this.#advanceInRing(subscriber, now)) return;
      } else return;
    }
  }

  /** A page has come that begins at the subscriber's position. */
  enterPage(subscriber: Subscriber, page: Page): void {
    if (subscriber.resuming) {
      subscriber.resuming = false;
      this.#run.host.counters.resumed(page.gap === null ? "history" : "gap");
    }
    if (page.gap === null) {
      if (page.position?.exact === true) subscriber.lastIdIsReal = true;
      return;
    }
    const told = subscriber.toldGap;
    if (told !== null && told.reason === page.gap.reason && told.to === page.gap.to) return;
    subscriber.pendingGap = page.gap;
    subscriber.gapNewest = page.newest;
  }

  /** The position lies in a page that was read for another. */
  enterMiddle(subscriber: Subscriber): void {
    subscriber.lastIdIsReal = true;
    if (!subscriber.resuming) return;
    subscriber.resuming = false;
    this.#run.host.counters.resumed("history");
  }

  /** Once an outage: what comes later may be late, and nothing is known to be lost. */
  tellOutage(subscriber: Subscriber, now: number): void {
    if (subscriber.state === CLOSED || subscriber.blocked || subscriber.outageTold === this.#run.outage) return;
    subscriber.outageTold = this.#run.outage;
    const gap: Gap = { reason: "outage", from: subscriber.lastId, to: null, missed: null };
    this.#run.host.counters.gap("outage", null);
    const frames: Uint8Array[] = [gapFrame(gap)];
    if (subscriber.lastId !== null && subscriber.lastIdIsReal) {
      frames.push(cursorFrame(subscriber.lastId));
      subscriber.owesCursor = false;
    }
    this.#write(subscriber, Buffer.concat(frames), now);
  }

  /** Tells the client of the last entry that its filter held back. */
  sendCursor(subscriber: Subscriber, now: number): void {
    if (subscriber.state === CLOSED || subscriber.blocked || !subscriber.owesCursor) return;
    this.#write(subscriber, this.#owedCursor(subscriber)!, now);
  }

  /** When to look after a new subscriber for the first time. */
  firstLook(subscriber: Subscriber, now: number): number {
    return this.#nextLook(subscriber, now, now + this.#run.settings.heartbeatMs / 2);
  }

  /** Heartbeat, stall, expiry, age. Returns when to look again, in milliseconds of the run's clock. */
  tend(subscriber: Subscriber, now: number): number {
    const { settings, host } = this.#run;
    if (subscriber.expiresAt !== null && host.wallNow() >= subscriber.expiresAt) {
      this.#end(subscriber, UNAUTHORIZED_FRAME, "expired");
      return Number.POSITIVE_INFINITY;
    }
    if (subscriber.blocked) {
      if (now - subscriber.blockedSince >= settings.stallMs) {
        subscriber.sink.abort();
        this.#run.remove(subscriber, "stalled");
        return Number.POSITIVE_INFINITY;
      }
      return this.#nextLook(subscriber, now, subscriber.blockedSince + settings.stallMs);
    }
    if (subscriber.state === LIVE && subscriber.skipThrough !== null) {
      // The reader has still not brought what a page had: a rollback may lie between.
      this.#goBack(subscriber, { id: subscriber.skipThrough, exact: true });
      host.serveSoon(subscriber);
    }
    if (now >= subscriber.ageAt) {
      this.release(subscriber, "age", now);
      return Number.POSITIVE_INFINITY;
    }
    const interval = now - subscriber.lastEventAt < RECENT_MS ? settings.heartbeatMs : settings.heartbeatMs / 2;
    if (now - subscriber.lastWriteAt >= interval) {
      host.counters.heartbeat();
      const cursor = this.#owedCursor(subscriber);
      this.#write(subscriber, cursor === null ? PING_FRAME : Buffer.concat([cursor, PING_FRAME]), now);
    }
    return this.#nextLook(subscriber, now, subscriber.lastWriteAt + interval);
  }

  /** A clean end that loses nothing: the due cursor, when to come back, the end of the body. False while the socket is full. */
  release(subscriber: Subscriber, reason: CloseReason, _now: number): boolean {
    if (subscriber.state === CLOSED) return true;
    if (subscriber.blocked) return false;
    this.#end(subscriber, retryLine(this.#run.host.retryMs()), reason);
    return true;
  }

  /** Ends it now, full socket or not: what it lacks is announced. */
  cut(subscriber: Subscriber, frames: "penstock" | "zenml"): void {
    if (subscriber.state === CLOSED) return;
    this.#run.host.counters.gap("shutdown", null);
    const gap = gapFrame({ reason: "shutdown", from: subscriber.lastId, to: null, missed: null });
    const last = frames === "zenml" ? SHUTDOWN_END_FRAME : retryLine(this.#run.host.retryMs());
    this.#end(subscriber, Buffer.concat([gap, last]), "cut");
  }

  // --- the ring --------------------------------------------------------------------------------------------------------------

  #advanceInRing(subscriber: Subscriber, now: number): boolean {
    const { ring } = this.#run;
    if (subscriber.place < ring.first) return this.#fellOff(subscriber, now);
    if (subscriber.skipThrough !== null && !this.#skip(subscriber, subscriber.skipThrough)) return true;
    if (subscriber.place >= ring.next) {
      this.#caughtUp(subscriber, now);
      return false;
    }
    this.#send(subscriber, ring.batches.get(ring, subscriber.place, subscriber.filter), now);
    return true;
  }

  /** Passes over what a page brought already. False when the ring went another way than the page: the broker has to say what was lost. */
  #skip(subscriber: Subscriber, through: EventId): boolean {
    const { ring } = this.#run;
    const place = ring.skipThrough(subscriber.place, through);
    subscriber.place = place;
    if (place === ring.next) return true;
    if (ring.at(place).type === GAP || ring.reaches(place, through)) {
      subscriber.skipThrough = null;
      return true;
    }
    this.#goBack(subscriber, { id: through, exact: true });
    return false;
  }

  /** It has everything there is. */
  #caughtUp(subscriber: Subscriber, now: number): void {
    if (subscriber.behindGap) {
      subscriber.behindGap = false;
      if (subscriber.gapNewest !== null) {
        subscriber.lastId = subscriber.gapNewest;
        subscriber.lastIdIsReal = true;
        subscriber.gapNewest = null;
      }
      if (subscriber.lastId !== null && subscriber.lastIdIsReal) {
        subscriber.owesCursor = true;
        this.sendCursor(subscriber, now);
        if (subscriber.blocked) return;
      }
    }
    if (this.#run.end.isDue(now)) {
      if (subscriber.skipThrough === null || subscriber.skipThrough === subscriber.provenHead)
        this.#end(subscriber, END_FRAME, "end");
      else {
        this.#goBack(subscriber, { id: subscriber.skipThrough, exact: true });
        this.#run.host.serveSoon(subscriber);
      }
    } else if (subscriber.owesCursor) this.#run.owesCursors(now);
  }

  /** Its place is no longer in the ring. */
  #fellOff(subscriber: Subscriber, now: number): boolean {
    const { ring, settings } = this.#run;
    if (settings.slowConsumer === "disconnect") {
      this.release(subscriber, "slow", now);
      return false;
    }
    // Across a rollback only the broker can say what is missing.
    if (settings.slowConsumer === "gap" && subscriber.place >= ring.epoch && subscriber.skipThrough === null) {
      let first = ring.first;
      while (first < ring.next && ring.at(first).type === GAP) first++;
      const missed = subscriber.filter.key === "" ? ring.first - subscriber.place : null;
      subscriber.pendingGap = {
        reason: "overflow",
        from: subscriber.lastId,
        to: first < ring.next ? ring.at(first).id : null,
        missed,
      };
      subscriber.gapNewest = ring.after;
      subscriber.place = ring.first;
      return true;
    }
    if (subscriber.skipThrough !== null) this.#goBack(subscriber, { id: subscriber.skipThrough, exact: true });
    else if (subscriber.lastId !== null) this.#goBack(subscriber, { id: subscriber.lastId, exact: subscriber.lastIdIsReal });
    // It joined before the first entry, or stands behind a rollback: all that was trimmed since is missing, and will be told.
    else this.#goBack(subscriber, { id: ZERO_ID, exact: false });
    return true;
  }

  #goBack(subscriber: Subscriber, position: Position): void {
    subscriber.state = HISTORY;
    subscriber.position = position;
    subscriber.page = null;
    subscriber.skipThrough = null;
  }

  #goLive(subscriber: Subscriber, place: number): void {
    subscriber.state = LIVE;
    subscriber.place = place;
    subscriber.position = null;
    subscriber.page = null;
  }

  /** `?tail=N`. True when the subscriber has been placed or has got a position to be placed by. */
  #placeAtTail(subscriber: Subscriber, count: number): boolean {
    const { ring, host } = this.#run;
    if (count === 0) {
      subscriber.lastId = ring.newest;
      subscriber.lastIdIsReal = ring.newest !== null;
      this.#goLive(subscriber, ring.next);
      return true;
    }
    let place = ring.next;
    let found = 0;
    while (place > ring.start && found < count) {
      place--;
      if (ring.at(place).type !== GAP) found++;
    }
    if (found === count || ring.after === BEGINNING) {
      this.#goLive(subscriber, place);
      return true;
    }
    subscriber.awaiting = true;
    host.findTail(subscriber, count);
    return false;
  }

  // --- history ---------------------------------------------------------------------------------------------------------------

  #advanceInHistory(subscriber: Subscriber, now: number): boolean {
    const page = subscriber.page;
    if (page === null) {
      this.#run.wantPage(subscriber);
      return subscriber.page !== null;
    }
    if (subscriber.place >= page.next) {
      this.#leavePage(subscriber, page);
      return true;
    }
    const batch = page.batches.get(page, subscriber.place, subscriber.filter);
    this.#send(subscriber, batch, now);
    if (batch.events > 0) this.#run.host.counters.replayed(batch.events);
    if (subscriber.blocked) {
      // A reader that stalls holds no page, only its place.
      subscriber.page = null;
      subscriber.position = { id: subscriber.lastId!, exact: true };
    }
    return true;
  }

  /** On to the ring when it covers what follows, else to the next page. */
  #leavePage(subscriber: Subscriber, page: Page): void {
    const { ring } = this.#run;
    const end = page.end;
    subscriber.page = null;
    if (end === null) {
      // The stream was empty then: what the ring has got since is all there is. What it had before is not of this stream any more.
      this.#goLive(subscriber, ring.after === BEGINNING ? ring.start : page.ringNext);
      return;
    }
    subscriber.lastId = end.id;
    subscriber.lastIdIsReal = end.exact;
    if (page.atHead && page.entries.length === 0) subscriber.provenHead = end.id;
    const place = ring.placeAfter(end.id, end.exact);
    if (place !== null) {
      this.#goLive(subscriber, place);
    } else if (page.ringEpoch !== ring.epoch) {
      // Read before a rollback: whether this place is still one, only the broker can say.
      subscriber.position = end;
    } else if (ring.newest === null || compareEventIds(end.id, ring.newest) > 0) {
      // The broker has answered ahead of the reader: what it brings next may be known already.
      this.#goLive(subscriber, ring.next);
      subscriber.skipThrough = end.id;
    } else if (page.atHead && page.entries.length === 0 && page.ringNext >= ring.first) {
      // Nothing lay behind this place when the page was read: what follows is what the ring has got since.
      this.#goLive(subscriber, page.ringNext);
    } else {
      subscriber.position = end;
    }
  }

  // --- writing ---------------------------------------------------------------------------------------------------------------

  #send(subscriber: Subscriber, batch: Batch, now: number): void {
    subscriber.place = batch.to;
    if (batch.mark !== null) {
      subscriber.pendingGap = { ...batch.mark.gap!, from: subscriber.lastId };
      subscriber.gapNewest = batch.mark.newest;
      subscriber.skipThrough = null;
      if (batch.mark.gap!.reason === "rollback") {
        // Its last id names nothing in what follows; `#tellGap` has it in the gap, and sends the cursor that it owes before.
        this.#tellGap(subscriber, now);
        subscriber.lastId = null;
        subscriber.lastIdIsReal = false;
      }
      return;
    }
    subscriber.lastId = batch.lastId;
    subscriber.lastIdIsReal = true;
    subscriber.gapNewest = null;
    subscriber.toldGap = null;
    if (batch.bytes === null) {
      subscriber.owesCursor ||= batch.owesCursor;
      return;
    }
    subscriber.owesCursor = batch.owesCursor;
    subscriber.behindGap = false;
    if (batch.events > 0) subscriber.lastEventAt = now;
    this.#run.host.counters.delivered(batch.events, batch.bytes.length);
    this.#write(subscriber, batch.bytes, now);
  }

  #tellGap(subscriber: Subscriber, now: number): void {
    const gap = subscriber.pendingGap!;
    subscriber.pendingGap = null;
    subscriber.toldGap = gap;
    subscriber.behindGap = true;
    this.#run.host.counters.gap(gap.reason, gap.missed);
    const cursor = this.#owedCursor(subscriber);
    this.#write(subscriber, cursor === null ? gapFrame(gap) : Buffer.concat([cursor, gapFrame(gap)]), now);
    if (subscriber.blocked && subscriber.state === HISTORY) subscriber.page = null;
  }

  #owedCursor(subscriber: Subscriber): Buffer | null {
    if (!subscriber.owesCursor) return null;
    subscriber.owesCursor = false;
    return cursorFrame(subscriber.lastId as EventId);
  }

  #write(subscriber: Subscriber, bytes: Uint8Array, now: number): void {
    subscriber.lastWriteAt = now;
    if (subscriber.sink.write(bytes)) return;
    subscriber.blocked = true;
    subscriber.blockedSince = now;
    this.#run.host.counters.backpressure();
  }

  #end(subscriber: Subscriber, last: Uint8Array, reason: CloseReason): void {
    const cursor = reason === "end" ? null : this.#owedCursor(subscriber);
    subscriber.sink.end(cursor === null ? last : Buffer.concat([cursor, last]));
    this.#run.remove(subscriber, reason);
  }

  #nextLook(subscriber: Subscriber, now: number, at: number): number {
    let next = Math.min(at, subscriber.ageAt);
    if (subscriber.expiresAt !== null) next = Math.min(next, now + Math.max(0, subscriber.expiresAt - this.#run.host.wallNow()));
    return Math.max(next, now + 1);
  }
}

/** A stream that carried an event so recently is not idle. */
const RECENT_MS = 60_000;
