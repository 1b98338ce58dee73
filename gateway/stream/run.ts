/**
 * One watched run: what the broker tells of it goes into the ring, and from there to each subscriber that may advance. Pure and
 * synchronous: the time is passed in, and all effects go through `RunHost` and `Sink`.
 */
import { compareEventIds, type EventId, millisecondsOf } from "../../protocol/event-id.ts";
import { END_DELAY_MS } from "../../protocol/wire.ts";
import type { Gap, HistoryPage, Position, RunObserver, StoredEntry, Tail } from "../broker/broker.ts";
import { deliver, place } from "./delivery.ts";
import { EndSearch } from "./end-search.ts";
import { FlushClock } from "./flush-clock.ts";
import { tellOutage } from "./gaps.ts";
import { HistoryReads } from "./history-reads.ts";
import { END, EVENT, gapEntry, type LogEntry, logEntryOf, UNKNOWN } from "./log-entry.ts";
import { sendCursor } from "./outlet.ts";
import type { Page } from "./page.ts";
import { Ring } from "./ring.ts";
import { isBeyond, RunEnd } from "./run-end.ts";
import type { RunHost, RunSettings } from "./run-host.ts";
import type { CloseReason } from "./sink.ts";
import { CLOSED, HISTORY, LIVE, type Subscriber, WAITING } from "./subscriber.ts";
import { SubscriberList } from "./subscriber-list.ts";

export class Run implements RunObserver {
  readonly id: string;
  readonly ring: Ring;
  readonly end = new RunEnd();
  readonly subscribers = new SubscriberList();
  readonly settings: RunSettings;
  readonly host: RunHost;
  /** False until the broker has told what the stream holds. */
  #known = false;
  /** Serial number of the outage that lasts, 0 while there is none. */
  #outage = 0;
  #outages = 0;
  #readerAway = false;
  #historyAway = false;
  #retryPlanned = false;
  /** A look for an end that the broker may know, and the ring does not have; null when none is wanted. */
  #endSearch: EndSearch | null = null;
  #reads: HistoryReads | null = null;
  readonly #flushes: FlushClock;
  #sendsCursors = false;
  /** True while entries that came live wait for their first flush: what a watch begins with is history, and no measure of lag. */
  #hasLiveEntries = false;
  readonly #clock: () => number;

  /** `clock`: milliseconds that only rise, the same that are passed to the other methods. */
  constructor(id: string, settings: RunSettings, host: RunHost, clock: () => number) {
    this.id = id;
    this.settings = settings;
    this.host = host;
    this.#clock = clock;
    this.#flushes = new FlushClock(settings);
    this.ring = new Ring(settings.ringEvents, settings.ringBytes);
  }

  // --- what the broker tells -------------------------------------------------------------------------------------------------

  onTail(tail: Tail): void {
    const now = this.#clock();
    const { end, ring } = this;
    this.#known = true;
    end.marked = tail.endedId;
    ring.begin(tail);
    for (const stored of tail.entries) {
      const entry = logEntryOf(stored);
      this.#noteEntry(entry, this.#endDueAt(entry.id, now));
      // Up to there something is missing, of which only the broker can tell.
      if (tail.deletedUpTo === undefined || compareEventIds(entry.id, tail.deletedUpTo) > 0) this.#push(entry);
    }
    const { endedId } = tail;
    if (endedId !== null && (tail.newest === null || !isBeyond(tail.newest, endedId)))
      end.reach(endedId, this.#endDueAt(endedId, now));
    this.#keepMark();
    if (end.id === null) this.#endSearch = EndSearch.beforeTail(tail, now);
    for (const subscriber of this.subscribers.all()) this.host.serveSoon(subscriber);
    this.#plan(now);
  }

  onEntries(entries: readonly StoredEntry[]): void {
    const now = this.#clock();
    let bytes = 0;
    this.#hasLiveEntries = true;
    for (const stored of entries) {
      const entry = logEntryOf(stored);
      this.#noteEntry(entry, now + END_DELAY_MS);
      this.#push(entry);
      bytes += entry.frame.length;
    }
    if (this.#endSearch?.isSettledBy(entries.at(-1)!.id) === true) this.#endSearch = null;
    this.#keepMark();
    this.#flushes.grew(bytes, now);
    this.#plan(now);
  }

  onGap(gap: Gap, newest: EventId | null): void {
    const now = this.#clock();
    const { end, ring } = this;
    if (gap.reason === "rollback") {
      this.#reads?.forget();
      if (end.id !== null && isLost(end.id, gap, newest)) end.forget();
    } else if (newest !== null) end.wentOnTo(newest);
    else end.doubt();
    this.#push(gapEntry(gap, ring.newest ?? "", newest));
    // An end may be among what is missing, or in what a rollback has left.
    if (end.id === null) this.#endSearch = newest === null ? EndSearch.ofMark(now) : EndSearch.before(newest, now);
    this.#keepMark();
    this.#plan(now);
  }

  onMark(endedId: EventId): void {
    const now = this.#clock();
    const { end, ring } = this;
    end.marked = endedId;
    // Read long after the tail: what lies between this reader's place and the end, a page has to say.
    if (ring.newest === null || !isBeyond(ring.newest, endedId)) end.hint(endedId, this.#endDueAt(endedId, now));
    this.#keepMark();
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

  /** True from the first failure to read until reading goes on. */
  get isInOutage(): boolean {
    return this.#outage > 0;
  }

  // --- history ---------------------------------------------------------------------------------------------------------------

  /** Gets the page at the subscriber's position, now or later. */
  wantPage(subscriber: Subscriber): void {
    // While history is away all ask again together, at the retry that is planned.
    if (this.#historyAway && this.#retryPlanned) return;
    this.#reads ??= new HistoryReads(this);
    this.#reads.want(subscriber, this.#clock());
  }

  /** The answer to `RunHost.readPage`. */
  pageRead(position: Position | null, history: HistoryPage): void {
    const now = this.#clock();
    this.#historyIsBack();
    this.#reads!.answered(position, history, now, (page) => this.#heedEnd(page, now));
    if (this.#endSearch === null || this.#endSearch.from !== position) return;
    if (this.end.id === null && this.#endSearch.goOn(history)) this.#reads!.look(this.#endSearch.from);
    else this.#endSearch = null;
  }

  /** History could not be read: those who wait stay, hear of the outage, and are served when it is over. */
  pageFailed(position: Position | null): void {
    this.#reads!.failed(position);
    this.#historyFails();
  }

  /** The answer to `RunHost.findTail`; undefined when the broker could not tell. */
  tailFound(subscriber: Subscriber, position: Position | null | undefined): void {
    subscriber.awaiting = false;
    if (position === undefined) {
      this.#historyFails();
      return;
    }
    this.#historyIsBack();
    if (subscriber.state === CLOSED) return;
    subscriber.tail = null;
    subscriber.position = position;
    subscriber.lastId = position?.id ?? null;
    this.host.serveSoon(subscriber);
  }

  /** Asks again for all that could not be read, and later once more, until nobody asks or an answer comes. */
  retryPages(): void {
    this.#retryPlanned = false;
    let isWanted = this.#endSearch?.at === null;
    if (isWanted) this.#searchEnd();
    for (const subscriber of [...this.subscribers.all()]) {
      if (!subscriber.blocked && !subscriber.awaiting) {
        if (subscriber.state === HISTORY && subscriber.page === null) this.wantPage(subscriber);
        else if (subscriber.state !== WAITING) continue;
        this.host.serveSoon(subscriber);
      }
      isWanted ||= subscriber.awaiting || subscriber.state === WAITING;
    }
    if (!this.#historyAway) return;
    if (isWanted) this.#retryLater();
    else this.#historyIsBack();
  }

  // --- subscribers -----------------------------------------------------------------------------------------------------------

  join(subscriber: Subscriber): void {
    this.subscribers.add(subscriber);
    this.host.serveSoon(subscriber);
  }

  /** Writes what a subscriber may get now. Returns how many writes that took. */
  serve(subscriber: Subscriber, now: number): number {
    if (subscriber.state === CLOSED) return 0;
    let writes = 0;
    if (this.#known) {
      if (subscriber.state === WAITING && !subscriber.awaiting) place(subscriber);
      writes = deliver(subscriber, now);
    }
    // Who reads the ring lacks nothing while only history is away.
    if (this.#outage > 0 && (this.#readerAway || subscriber.state !== LIVE)) tellOutage(subscriber, this.#outage, now);
    return writes;
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
    this.subscribers.remove(subscriber);
    this.host.closed(subscriber, reason);
  }

  // --- flushing --------------------------------------------------------------------------------------------------------------

  /** Serves subscribers until about `limit` writes are made, and returns how many were; `isFlushing` tells whether some are left. */
  flush(now: number, limit: number): number {
    const { subscribers, end } = this;
    if (!subscribers.isPassing) {
      subscribers.startPass();
      this.#sendsCursors = this.#flushes.begin(now, this.ring.next);
      if (end.isDue(now)) end.isTold = true;
      const search = this.#endSearch;
      if (search !== null && search.at !== null && now >= search.at) this.#searchEnd();
      this.#sampleLag();
    }
    let writes = 0;
    while (writes < limit) {
      const subscriber = subscribers.next();
      if (subscriber === null) {
        this.#plan(now);
        break;
      }
      writes++;
      if (subscriber.blocked) continue;
      writes += Math.max(0, deliver(subscriber, now) - 1);
      if (this.#sendsCursors) sendCursor(subscriber, now);
    }
    return writes;
  }

  /** True while a flush is under way that is to go on. */
  get isFlushing(): boolean {
    return this.subscribers.isPassing;
  }

  /** A subscriber owes its client a cursor. */
  owesCursors(now: number): void {
    this.#flushes.owesCursors(now);
    this.#plan(now);
  }

  /** Lets go of what only spares work in a wave; true while there is more of it, to be let go of later. */
  cool(now: number): boolean {
    this.ring.batches.clear();
    return this.#reads?.expire(now) ?? false;
  }

  // ---------------------------------------------------------------------------------------------------------------------------

  #noteEntry(entry: LogEntry, endDueAt: number): void {
    if (entry.type === END) {
      this.end.reach(entry.id, endDueAt);
      return;
    }
    this.end.wentOnTo(entry.id);
    if (entry.type === UNKNOWN) this.host.counters.unknownEntry();
  }

  #push(entry: LogEntry): void {
    const before = this.ring.bytes;
    this.ring.push(entry);
    this.host.ringChanged(this, this.ring.bytes - before);
  }

  /** An end that is old when the run is met needs no delay: its stragglers have come. */
  #endDueAt(endId: EventId, now: number): number {
    return this.host.wallNow() - millisecondsOf(endId) > END_DELAY_MS ? now : now + END_DELAY_MS;
  }

  /** What a page says of the end: it may be ahead of the ring, or behind it. */
  #heedEnd(page: Page, now: number): void {
    const { end } = this;
    const { newest } = this.ring;
    if (page.newest !== null) end.wentOnTo(page.newest);
    // A page that was asked for since knows nothing of it, though it has read the mark.
    if (end.id !== null && !end.isReached && page.knownEnd === end.id && !page.tellsOfEnd(end.id)) end.dropHint();
    const inPage = page.entries.findLast((entry) => entry.type === END)?.id ?? null;
    const marked = page.endedId;
    if (marked !== null) end.marked = marked;
    const found = inPage !== null && (marked === null || compareEventIds(inPage, marked) > 0) ? inPage : marked;
    if (found !== null && page.tellsOfEnd(found) && (newest === null || !isBeyond(newest, found))) end.hint(found, now);
    this.#keepMark();
    this.#plan(now);
  }

  #searchEnd(): void {
    this.#endSearch!.at = null;
    this.#reads ??= new HistoryReads(this);
    this.#reads.look(this.#endSearch!.from);
  }

  /** The mark outlives the stream: whoever meets the end sets it, and whoever sees that the run went on removes it. */
  #keepMark(): void {
    const { end } = this;
    if (end.id === end.marked) return;
    end.marked = end.id;
    if (end.id === null) this.host.clearEnded(this);
    else this.host.markEnded(this, end.id);
  }

  #historyFails(): void {
    this.#historyAway = true;
    this.#outageBegins();
    this.#retryLater();
  }

  #historyIsBack(): void {
    this.#historyAway = false;
    this.#outageEnds();
  }

  #retryLater(): void {
    if (this.#retryPlanned) return;
    this.#retryPlanned = true;
    this.host.retryPagesLater(this);
  }

  #outageBegins(): void {
    if (this.#outage === 0) this.#outage = ++this.#outages;
    for (const subscriber of this.subscribers.all()) this.host.serveSoon(subscriber);
  }

  #outageEnds(): void {
    if (this.#outage === 0 || this.#readerAway || this.#historyAway) return;
    this.#outage = 0;
    for (const subscriber of this.subscribers.all()) this.host.serveSoon(subscriber);
  }

  /** Asks for the next flush, unless one is under way: it asks at its end. */
  #plan(now: number): void {
    const { end } = this;
    if (this.isFlushing) return;
    const endDueAt = end.id === null || end.isTold ? null : end.dueAt;
    const at = this.#flushes.plan(now, this.ring.next, endDueAt ?? this.#endSearch?.at ?? null);
    if (at !== null) this.host.flushAt(this, at);
  }

  #sampleLag(): void {
    const { ring } = this;
    if (!this.#hasLiveEntries) return;
    this.#hasLiveEntries = false;
    if (ring.next === ring.first || this.subscribers.size === 0) return;
    const newest = ring.at(ring.next - 1);
    if (newest.type === EVENT) this.host.counters.lag(this.host.wallNow() - millisecondsOf(newest.id));
  }
}

/** True when an end entry is not in what a rollback has left. */
function isLost(endId: EventId, gap: Gap, newest: EventId | null): boolean {
  if (gap.to !== null) return compareEventIds(endId, gap.to) >= 0;
  return newest === null || compareEventIds(endId, newest) > 0;
}
