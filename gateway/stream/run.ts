/**
 * One watched run: what the broker tells of it goes into the ring, and from there to each subscriber that may advance. Pure and
 * synchronous: the time is passed in, and all effects go through `RunHost` and `Sink`.
 */
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import type { Gap, HistoryPage, Position, RunObserver, StoredEntry, Tail } from "../broker/broker.ts";
import { BATCH_BYTES } from "./batch.ts";
import { Delivery } from "./delivery.ts";
import { STREAM_FAILED_FRAME } from "./frame.ts";
import { END, EVENT, gapEntry, type LogEntry, logEntryOf, UNKNOWN } from "./log-entry.ts";
import { Page, PageCache } from "./page.ts";
import { BEGINNING, Ring } from "./ring.ts";
import { isBeyond, RunEnd } from "./run-end.ts";
import { CURSOR_INTERVAL_MS, type RunHost, type RunSettings } from "./run-host.ts";
import type { CloseReason } from "./sink.ts";
import { CLOSED, HISTORY, type Subscriber, WAITING } from "./subscriber.ts";

export class Run implements RunObserver {
  readonly id: string;
  readonly ring: Ring;
  readonly end = new RunEnd();
  readonly subscribers: Subscriber[] = [];
  /** False until the broker has told what the stream holds. */
  known = false;
  /** Serial number of the outage that lasts, 0 while there is none. */
  outage = 0;
  readonly settings: RunSettings;
  readonly host: RunHost;
  readonly #delivery: Delivery;
  readonly #clock: () => number;
  #outages = 0;
  #readerAway = false;
  #pagesAway = false;
  #pages: PageCache | null = null;
  /** Page reads under way, with those who wait; the late ones came after the read had begun. */
  #reads: PageRead[] = [];
  #flushAt = Number.POSITIVE_INFINITY;
  #lastFlush = Number.NEGATIVE_INFINITY;
  #unsentSince = 0;
  #unsentBytes = 0;
  /** How far a flush in slices has come; -1 when none is under way. */
  #flushed = -1;
  #cursorsAt = Number.POSITIVE_INFINITY;
  /** The end of which a flush has told all; who comes to the head later is told there. */
  #endTold: EventId | null = null;
  /** Offset up to which the last flush has gone. */
  #flushedThrough = 0;
  #frameBytes = 0;
  #frames = 0;

  /** `clock`: milliseconds that only rise, the same that are passed to the other methods. */
  constructor(id: string, settings: RunSettings, host: RunHost, clock: () => number) {
    this.id = id;
    this.settings = settings;
    this.host = host;
    this.#clock = clock;
    this.ring = new Ring(settings.ringEvents, settings.ringBytes);
    this.#delivery = new Delivery(this);
  }

  // --- what the broker tells -------------------------------------------------------------------------------------------------

  onTail(tail: Tail): void {
    const now = this.#clock();
    this.known = true;
    this.end.marked = tail.endedId;
    this.ring.after = tail.complete ? BEGINNING : tail.after;
    this.ring.newest = tail.newest;
    for (const entry of tail.entries) this.#append(logEntryOf(entry), now);
    if (tail.endedId !== null) {
      if (this.ring.newest !== null && isBeyond(this.ring.newest, tail.endedId)) this.#unmark();
      else this.end.met(tail.endedId, now, this.host.wallNow());
    }
    for (const subscriber of this.subscribers) {
      if (subscriber.state === WAITING) this.host.serveSoon(subscriber);
    }
    this.#plan(now);
  }

  onEntries(entries: readonly StoredEntry[]): void {
    const now = this.#clock();
    if (this.#unsentBytes === 0) this.#unsentSince = now;
    for (const stored of entries) {
      const entry = logEntryOf(stored);
      this.#append(entry, now);
      this.#unsentBytes += entry.frame.length;
    }
    this.#plan(now);
  }

  onGap(gap: Gap, newest: EventId | null): void {
    const now = this.#clock();
    if (gap.reason === "rollback") {
      this.#pages?.clear();
      if (this.end.id !== null && (newest === null || compareEventIds(this.end.id, newest) > 0)) {
        this.end.id = null;
        this.#unmark();
      }
    }
    this.#push(gapEntry(gap, this.ring.newest ?? "", newest));
    this.#plan(now);
  }

  onOutage(): void {
    this.#readerAway = true;
    this.#outageBegins();
  }

  onRecovered(): void {
    this.#readerAway = false;
    this.#outageEnds();
  }

  hasSeen(id: EventId): boolean {
    return this.ring.has(id);
  }

  /** A page of history has been read. */
  pageRead(position: Position | null, history: HistoryPage): void {
    const now = this.#clock();
    const read = this.#takeRead(position);
    this.#pagesAway = false;
    this.#outageEnds();
    const page = new Page(position, history, this.ring);
    this.#noteEnd(page, history, now);
    this.#pages ??= new PageCache();
    this.#pages.add(page, now);
    // That a position is newer than the stream must be the answer to a question asked after the request came.
    const late = page.gap?.reason === "rollback" ? read.late : [];
    const waiting = late.length > 0 ? read.waiting : [...read.waiting, ...read.late];
    for (const subscriber of waiting) this.#give(subscriber, page, 0);
    for (const subscriber of late) {
      subscriber.awaiting = false;
      this.wantPage(subscriber);
    }
  }

  /** History could not be read: those who wait stay, hear of the outage, and are served when it is over. */
  pageFailed(position: Position | null): void {
    const read = this.#takeRead(position);
    for (const subscriber of [...read.waiting, ...read.late]) subscriber.awaiting = false;
    this.#pagesAway = true;
    this.#outageBegins();
    this.host.retryPagesLater(this);
  }

  /** Asks again for all that could not be read. */
  retryPages(): void {
    let wanted = this.#reads.length > 0;
    for (const subscriber of [...this.subscribers]) {
      if (subscriber.blocked || subscriber.awaiting) continue;
      if (subscriber.state === HISTORY && subscriber.page === null) {
        wanted = true;
        this.wantPage(subscriber);
      } else if (subscriber.state === WAITING && this.known) {
        wanted = true;
        this.host.serveSoon(subscriber);
      }
    }
    if (wanted) return;
    this.#pagesAway = false;
    this.#outageEnds();
  }

  /** The answer to `RunHost.findTail`; undefined when the broker could not tell. */
  tailFound(subscriber: Subscriber, position: Position | null | undefined): void {
    subscriber.awaiting = false;
    if (position === undefined) {
      this.#pagesAway = true;
      this.#outageBegins();
      this.host.retryPagesLater(this);
      return;
    }
    this.#pagesAway = false;
    this.#outageEnds();
    if (subscriber.state === CLOSED) return;
    subscriber.tail = null;
    subscriber.position = position;
    subscriber.lastId = position?.id ?? null;
    this.host.serveSoon(subscriber);
  }

  // --- subscribers -----------------------------------------------------------------------------------------------------------

  join(subscriber: Subscriber): void {
    subscriber.index = this.subscribers.length;
    this.subscribers.push(subscriber);
    this.host.serveSoon(subscriber);
  }

  /** Writes all that a subscriber may get now. */
  serve(subscriber: Subscriber, now: number): void {
    if (subscriber.state === CLOSED) return;
    if (this.known) {
      if (subscriber.state === WAITING && !subscriber.awaiting) this.#delivery.place(subscriber);
      this.#delivery.deliver(subscriber, now);
    }
    if (this.outage > 0) this.#delivery.tellOutage(subscriber, now);
  }

  /** The socket takes bytes again. */
  drained(subscriber: Subscriber): void {
    if (subscriber.state === CLOSED || !subscriber.blocked) return;
    subscriber.blocked = false;
    this.host.serveSoon(subscriber);
  }

  /** Takes a subscriber off; what it has not got yet is not lost, it resumes from its last id. */
  remove(subscriber: Subscriber, reason: CloseReason): void {
    if (subscriber.state === CLOSED) return;
    subscriber.state = CLOSED;
    subscriber.page = null;
    const last = this.subscribers.pop()!;
    if (last !== subscriber) {
      let hole = subscriber.index;
      if (hole < this.#flushed && this.#flushed <= this.subscribers.length) {
        // The last one has not been served by the flush under way: it goes behind all that have.
        this.#flushed--;
        this.#put(this.subscribers[this.#flushed]!, hole);
        hole = this.#flushed;
      }
      this.#put(last, hole);
    }
    this.host.closed(subscriber, reason);
  }

  // --- flushing --------------------------------------------------------------------------------------------------------------

  /** Serves at most `limit` subscribers; true when the flush is complete, false when it goes on with the next call. */
  flush(now: number, limit: number): boolean {
    if (this.#flushed < 0) {
      this.#flushed = 0;
      this.#flushAt = Number.POSITIVE_INFINITY;
      this.#lastFlush = now;
      this.#unsentBytes = 0;
      if (this.end.isDue(now)) this.#endTold = this.end.id;
      this.#sampleLag();
    }
    const sendCursors = now >= this.#cursorsAt;
    for (let served = 0; served < limit && this.#flushed < this.subscribers.length; served++) {
      const subscriber = this.subscribers[this.#flushed++]!;
      if (!subscriber.blocked) {
        this.#delivery.deliver(subscriber, now);
        if (sendCursors) this.#delivery.sendCursor(subscriber, now);
      }
    }
    if (this.#flushed < this.subscribers.length) return false;
    this.#flushed = -1;
    if (sendCursors) this.#cursorsAt = Number.POSITIVE_INFINITY;
    this.#plan(now);
    return true;
  }

  /** A subscriber owes its client a cursor: it goes out within a second, with all others of this run. */
  owesCursors(now: number): void {
    if (this.#cursorsAt === Number.POSITIVE_INFINITY) {
      this.#cursorsAt = now + CURSOR_INTERVAL_MS;
      this.#plan(now);
    }
  }

  /** When to look after a new subscriber for the first time. */
  firstLook(subscriber: Subscriber, now: number): number {
    return this.#delivery.firstLook(subscriber, now);
  }

  /** Looks after one subscriber: heartbeat, stall, expiry, age. Returns when to look again. */
  tend(subscriber: Subscriber, now: number): number {
    return this.#delivery.tend(subscriber, now);
  }

  /** Lets go of one subscriber so that it comes back elsewhere without a loss; false when its socket is full at the moment. */
  release(subscriber: Subscriber, reason: CloseReason, now: number): boolean {
    return this.#delivery.release(subscriber, reason, now);
  }

  /** Ends one subscriber now, and says that this server did not send it everything: nothing else is left to do in a drain. */
  cut(subscriber: Subscriber, frames: "penstock" | "zenml"): void {
    this.#delivery.cut(subscriber, frames);
  }

  /** Ends one subscriber because something here went wrong; a reconnect with its last id goes on. */
  fail(subscriber: Subscriber): void {
    if (subscriber.state === CLOSED) return;
    subscriber.sink.end(STREAM_FAILED_FRAME);
    this.remove(subscriber, "failed");
  }

  // --- for Delivery ----------------------------------------------------------------------------------------------------------

  /** Gets the page at the subscriber's position: from those just read, from a read under way, or by a new one. */
  wantPage(subscriber: Subscriber): void {
    if (subscriber.awaiting || subscriber.state !== HISTORY) return;
    const position = subscriber.position;
    const found = this.#pages?.find(position, this.#clock()) ?? null;
    if (found !== null) {
      this.#give(subscriber, found.page, found.index);
      return;
    }
    subscriber.awaiting = true;
    const read = this.#reads.find((other) => samePosition(other.position, position));
    if (read !== undefined) {
      read.late.push(subscriber);
      return;
    }
    this.#reads.push({ position, waiting: [subscriber], late: [] });
    this.host.readPage(this, position, this.#pageEntries());
  }

  /** Forgets pages read a while ago; true while some are kept. */
  expirePages(now: number): boolean {
    if (this.#pages === null) return false;
    if (this.#pages.expire(now)) return true;
    this.#pages = null;
    return false;
  }

  #give(subscriber: Subscriber, page: Page, index: number): void {
    subscriber.awaiting = false;
    // One that stalled meanwhile keeps its position and asks again when it drains: it must not hold a page.
    if (subscriber.state !== HISTORY || subscriber.blocked) return;
    subscriber.page = page;
    subscriber.place = index;
    if (index === 0) this.#delivery.enterPage(subscriber, page);
    else this.#delivery.enterMiddle(subscriber);
    this.host.serveSoon(subscriber);
  }

  #takeRead(position: Position | null): PageRead {
    const index = this.#reads.findIndex((read) => samePosition(read.position, position));
    return this.#reads.splice(index, 1)[0]!;
  }

  /** Pages of about a mebibyte, whatever the size of this run's events. */
  #pageEntries(): number {
    const average = this.#frames === 0 ? 0 : this.#frameBytes / this.#frames;
    return Math.max(16, Math.min(this.settings.pageEntries, Math.floor(PAGE_BYTES / Math.max(1, average))));
  }

  #noteEnd(page: Page, history: HistoryPage, now: number): void {
    const newest = this.ring.newest;
    const found = history.endedId ?? page.entries.findLast((entry) => entry.type === END)?.id ?? null;
    if (found === null || this.end.id !== null || (newest !== null && isBeyond(newest, found))) return;
    if (page.newest !== null && isBeyond(page.newest, found)) return;
    this.end.met(found, now, this.host.wallNow());
    this.#plan(now);
  }

  #append(entry: LogEntry, now: number): void {
    if (entry.type === END) {
      this.end.met(entry.id, now, this.host.wallNow());
      if (this.end.marked !== entry.id) {
        this.end.marked = entry.id;
        this.host.markEnded(this, entry.id);
      }
    } else if (entry.type === EVENT && this.end.reopenedBy(entry.id)) {
      this.#unmark();
    } else if (entry.type === UNKNOWN) {
      this.host.counters.unknownEntry();
    }
    this.#frames++;
    this.#frameBytes += entry.frame.length;
    this.#push(entry);
  }

  #push(entry: LogEntry): void {
    const before = this.ring.bytes;
    this.ring.push(entry);
    this.host.ringChanged(this, this.ring.bytes - before);
  }

  #unmark(): void {
    if (this.end.marked === null) return;
    this.end.marked = null;
    this.host.clearEnded(this);
  }

  #outageBegins(): void {
    if (this.outage > 0) return;
    this.outage = ++this.#outages;
    for (const subscriber of this.subscribers) this.host.serveSoon(subscriber);
  }

  #outageEnds(): void {
    if (this.outage === 0 || this.#readerAway || this.#pagesAway) return;
    this.outage = 0;
    for (const subscriber of this.subscribers) this.host.serveSoon(subscriber);
  }

  /** Decides when to flush: at once on a quiet stream, else coalesced; for the end and for owed cursors in their own time. */
  #plan(now: number): void {
    if (this.#flushed >= 0) return;
    let at = Number.POSITIVE_INFINITY;
    if (this.#unsentBytes >= BATCH_BYTES || now - this.#lastFlush >= this.settings.coalesceMs) {
      if (this.#hasUnserved()) at = now;
    } else if (this.#hasUnserved()) {
      at = Math.max(this.#unsentSince, this.#lastFlush) + this.settings.coalesceMs;
    }
    if (this.end.id !== this.#endTold) at = Math.min(at, Math.max(now, this.end.dueAt));
    at = Math.min(at, this.#cursorsAt);
    if (at >= this.#flushAt) return;
    this.#flushAt = at;
    this.host.flushAt(this, at);
  }

  #hasUnserved(): boolean {
    return this.#flushedThrough !== this.ring.next;
  }

  #sampleLag(): void {
    this.#flushedThrough = this.ring.next;
    if (this.ring.next === this.ring.first || this.subscribers.length === 0) return;
    const newest = this.ring.at(this.ring.next - 1);
    if (newest.type === EVENT) this.host.counters.lag(this.host.wallNow() - Number(newest.id.slice(0, newest.id.indexOf("-"))));
  }

  #put(subscriber: Subscriber, index: number): void {
    this.subscribers[index] = subscriber;
    subscriber.index = index;
  }
}

interface PageRead {
  readonly position: Position | null;
  readonly waiting: Subscriber[];
  readonly late: Subscriber[];
}

const PAGE_BYTES = 1024 * 1024;

function samePosition(a: Position | null, b: Position | null): boolean {
  if (a === null || b === null) return a === b;
  return a.id === b.id && a.exact === b.exact;
}
