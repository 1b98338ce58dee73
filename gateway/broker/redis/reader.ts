/**
 * Reads one run: at most one read in flight, each beginning with the entry that the last one ended with, so that a trimmed or replaced
 * stream shows at once. What looks like a loss is looked at in a transaction with XINFO (`proof.ts`) before anything is said.
 */
import { type EventId, previousId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { Gap, RunObserver } from "../broker.ts";
import { backoffMs } from "./backoff.ts";
import { bulk, type ReplyHandler } from "./connection.ts";
import { idOf, takeEntries } from "./entries.ts";
import { findError, rowsOf } from "./read-answers.ts";
import { ASKING, EXEC, MULTI, PAGE_ENTRIES, pttl, xinfo, xread, xrevrange } from "./read-commands.ts";
import type { ReaderHost } from "./reader-host.ts";
import { ReaderPlace } from "./reader-place.ts";
import { type Reply, ReplyError } from "./resp.ts";
import { newestOf, readStreamInfo, standsOf } from "./stream-info.ts";

const IDLE = 0;
const TAIL = 1;
const READ = 2;
const PROVE = 3;
const WALK = 4;

export class RunReader implements ReplyHandler {
  readonly runId: string;
  readonly key: string;
  readonly observer: RunObserver;
  host: ReaderHost;
  /** Where the host keeps it. */
  index = -1;
  /** The next reader of the same key. */
  sibling: RunReader | null = null;
  /** Sent before each command while the run's slot moves to this node. */
  asking = false;
  /** What the owner of this watch holds; it follows the reader from host to host. */
  watch: { reader: RunReader };
  isClosed = false;
  isStarted = false;
  /** `onOutage` has been called, `onRecovered` not yet. */
  isInOutage = false;
  /** When reading of this run began to fail, though its node answers; 0: it does not. */
  failingSince = 0;
  retryAt = 0;
  readAt = 0;

  readonly #bulkKey: string;
  #place = new ReaderPlace();
  /** A rollback that is told with the first page behind the common past. */
  #rolledBackFrom: EventId | null = null;
  /** Walking down: the lowest id that was not seen before. */
  #lowest: EventId | null = null;

  #state = IDLE;
  #inclusive = false;
  #dirty = false;
  #needsProof = false;
  #failures = 0;
  #missing = 0;
  #error: ReplyError | null = null;
  #answer: Reply[] | null = null;
  /** Of the run's end; undefined as long as it could not be read, and is asked for again. */
  #mark: EventId | null | undefined = undefined;
  #markRequest: object | null = null;
  /** How many rollbacks it went through. */
  #epoch = 0;

  constructor(runId: string, key: string, observer: RunObserver, host: ReaderHost) {
    this.runId = runId;
    this.key = key;
    this.observer = observer;
    this.host = host;
    this.watch = { reader: this };
    this.#bulkKey = bulk(key);
  }

  /** Something changed in the run: read it, now or when the read under way has come back. */
  wake(): void {
    this.#dirty = true;
    if (this.#state === IDLE && this.host.isReady && this.failingSince === 0) this.#request();
  }

  /** Continuity is in doubt (a new connection, another node): compare before going on. */
  prove(): void {
    this.#needsProof = true;
    this.wake();
  }

  /**
   * The same reader for another host. Answers still on their way to this one must not meet it, so this one is closed and a new one takes
   * its place.
   */
  moveTo(host: ReaderHost): RunReader {
    const next = new RunReader(this.runId, this.key, this.observer, host);
    next.isStarted = this.isStarted;
    next.isInOutage = this.isInOutage;
    next.readAt = this.readAt;
    next.failingSince = this.failingSince;
    next.retryAt = this.retryAt;
    next.#place = this.#place;
    next.#rolledBackFrom = this.#rolledBackFrom;
    next.#failures = this.#failures;
    next.#epoch = this.#epoch;
    next.#needsProof = this.isStarted;
    next.#mark = this.#mark;
    next.watch = this.watch;
    this.watch.reader = next;
    this.isClosed = true;
    return next;
  }

  /** The first read on a new connection: compares before it goes on. */
  begin(): void {
    this.#needsProof = this.isStarted;
    this.retry();
  }

  /** Tries again after a failure. */
  retry(): void {
    if (this.#state === IDLE && this.host.isReady) this.#request();
  }

  /** The regular look, for notices that were lost. */
  sweep(now: number): void {
    if (!this.isIdle || this.failingSince !== 0 || !this.isStarted) return;
    if (this.#mark === undefined) this.#markRequest ??= this.host.readMark(this);
    if (now - this.#place.provedAt >= this.host.settings.proofMs) {
      this.prove();
      return;
    }
    this.poll();
  }

  /** Asks whether there is anything new; false when it is busy with that already. */
  poll(): boolean {
    if (!this.isIdle || this.failingSince !== 0) return false;
    this.#begin(READ, 1);
    this.#inclusive = false;
    this.#send(xread(this.#bulkKey, this.#place.cursor));
    return true;
  }

  get isIdle(): boolean {
    return this.#state === IDLE;
  }

  /** The id behind which it reads. */
  get cursor(): EventId {
    return this.#place.cursor;
  }

  tellOutage(): void {
    if (this.isInOutage || this.isClosed) return;
    this.isInOutage = true;
    this.observer.onOutage();
  }

  /** What was in flight on a former connection is lost; its answers must not be waited for. */
  reset(): void {
    this.#state = IDLE;
    this.#missing = 0;
    this.#error = null;
    this.#lowest = null;
    this.#markRequest = null;
    this.failingSince = 0;
  }

  /** The mark's answer, undefined when it could not be read; an old question's is passed over. */
  onMark(request: object, mark: EventId | null | undefined): void {
    if (this.#markRequest !== request || this.isClosed) return;
    this.#markRequest = null;
    this.#mark = mark;
    if (!this.isStarted) this.onReply(null);
    else if (mark !== undefined && mark !== null) this.observer.onMark(mark);
  }

  onReply(reply: Reply): void {
    if (this.isClosed || this.#missing === 0) return;
    if (reply instanceof ReplyError) this.#error ??= reply;
    else if (Array.isArray(reply)) this.#answer = reply;
    if (--this.#missing > 0) return;
    const answer = this.#answer;
    const error = this.#error ?? findError(answer);
    const state = this.#state;
    this.#answer = null;
    this.#error = null;
    this.#state = IDLE;
    if (error !== null) {
      this.#fail(error);
      return;
    }
    const now = performance.now();
    const unreadMs = now - this.readAt;
    this.readAt = now;
    if (state === READ) this.#finishRead(answer, now);
    else if (state === PROVE) this.#finishProof(answer ?? [], now, unreadMs);
    else if (state === TAIL) this.#finishTail(answer ?? [], now);
    else if (state === WALK) this.#finishWalk(answer ?? []);
    this.#afterReply();
  }

  /** The host resets all its readers when a connection goes. */
  onLost(): void {}

  // --- asking ------------------------------------------------------------------------------------------------------------------

  #request(): void {
    if (!this.isStarted) this.#askTail();
    else if (this.#state === IDLE && this.#needsProof) this.#askProof();
    // Without an entry to hold on to, a plain read cannot show that something is missing.
    else if (this.#place.cursor === ZERO_ID || !this.#place.exact) this.#askProof();
    else {
      this.#dirty = false;
      this.#inclusive = true;
      this.#begin(READ, 1);
      this.#send(xread(this.#bulkKey, previousId(this.#place.cursor)!));
    }
  }

  #askTail(): void {
    const key = this.#bulkKey;
    this.#dirty = false;
    this.#needsProof = false;
    this.#begin(TAIL, 6);
    this.#send(MULTI, xrevrange(key, "+", this.host.settings.tailEntries + 1), xinfo(key), pttl(key), EXEC);
    this.#markRequest = this.host.readMark(this);
  }

  #askProof(): void {
    const key = this.#bulkKey;
    this.#dirty = false;
    this.#needsProof = false;
    this.#begin(PROVE, 5);
    this.#send(MULTI, xread(key, previousId(this.#place.cursor) ?? ZERO_ID), xinfo(key), pttl(key), EXEC);
  }

  #askWalk(end: EventId | "+"): void {
    this.#begin(WALK, 1);
    this.#send(xrevrange(this.#bulkKey, end, PAGE_ENTRIES));
  }

  #begin(state: number, answers: number): void {
    this.#state = state;
    this.#missing = answers;
    this.#error = null;
    this.#answer = null;
  }

  #send(...commands: string[]): void {
    if (this.asking) this.host.send(ASKING, null);
    for (const command of commands) this.host.send(command, this);
    this.host.settings.reads(1);
  }

  // --- answers -----------------------------------------------------------------------------------------------------------------

  #finishRead(answer: Reply[] | null, now: number): void {
    const rows = rowsOf(answer);
    if (!this.#inclusive) {
      if (rows.length > 0) this.#dirty = true;
      return;
    }
    if (rows.length === 0 || idOf(rows[0]!) !== this.#place.cursor) {
      this.#needsProof = true;
      return;
    }
    if (rows.length > PAGE_ENTRIES) this.#dirty = true;
    this.#deliver(rows, 1, now);
  }

  #finishTail([range, description, ttl]: Reply[], now: number): void {
    const { settings } = this.host;
    const info = readStreamInfo(description ?? null);
    const rows = range as Reply[];
    const after = rows.length > settings.tailEntries ? idOf(rows.pop()!) : null;
    rows.reverse();
    const taken = takeEntries(rows, 0, settings.duplicates);
    const youngest = rows.length > 0 ? idOf(rows.at(-1)!) : null;
    this.#place.start(info, youngest, Number(ttl), now);
    this.isStarted = true;
    const isAllThereWas = info === null ? this.#mark === null : info.added === rows.length;
    const complete = after === null && isAllThereWas;
    this.observer.onTail({ entries: taken.entries, complete, after, ...standsOf(info, this.#mark) });
    if (taken.dropped > 0) settings.duplicateDropped(taken.dropped);
  }

  #finishProof([read, description, ttl]: Reply[], now: number, unreadMs: number): void {
    const place = this.#place;
    const info = readStreamInfo(description ?? null);
    if (info === null) {
      this.#keyIsMissing(now, unreadMs);
      return;
    }
    // It expired and came back between two reads: as if it had been seen to be gone.
    if (place.isReplaced(info) && place.isExpired(unreadMs, this.host.settings.streamTtlMs, now)) place.keyIsGone(place.cursor);
    const rows = rowsOf(Array.isArray(read) ? read : null);
    const found = rows.length > 0 && idOf(rows[0]!) === place.cursor;
    const start = found ? 1 : 0;
    const behind = rows.slice(start).map(idOf);
    const more = rows.length > PAGE_ENTRIES;
    let gap = place.findGap({ info, found, behind, more });
    if (this.#rolledBackFrom !== null) {
      gap = { reason: "rollback", from: this.#rolledBackFrom, to: behind[0] ?? null, missed: null };
      this.#rolledBackFrom = null;
    } else if (gap?.reason === "rollback" && gap.from === place.cursor) {
      this.#askWalk("+");
      return;
    }
    if (gap !== null) this.#tellGap(gap, newestOf(info));
    if (this.isClosed) return;
    this.#deliver(rows, start, now);
    if (more) {
      place.rebasePage(info, gap !== null);
      this.#needsProof = true;
    } else {
      place.rebase(info, Number(ttl), now);
    }
  }

  /** Looks for the youngest entry that was handed over before; all above it is new. */
  #finishWalk(rows: Reply[]): void {
    for (const row of rows) {
      const id = idOf(row);
      if (this.observer.hasSeen(id)) {
        this.#startBehind(id);
        return;
      }
      this.#lowest = id;
    }
    const next = rows.length < PAGE_ENTRIES || this.#lowest === null ? null : previousId(this.#lowest);
    if (next === null) this.#startBehind(null);
    else this.#askWalk(next);
  }

  #startBehind(common: EventId | null): void {
    this.#rolledBackFrom = this.#place.cursor;
    this.#lowest = null;
    this.#place.rollBackTo(common);
    this.#epoch++;
    this.#needsProof = true;
  }

  #keyIsMissing(now: number, unreadMs: number): void {
    const place = this.#place;
    place.provedAt = now;
    const from = this.#rolledBackFrom ?? place.cursor;
    if (from === ZERO_ID) return;
    const isExpiry = this.#rolledBackFrom === null && place.isExpired(unreadMs, this.host.settings.streamTtlMs, now);
    if (!isExpiry) this.#tellGap({ reason: "retention", from, to: null, missed: null }, null);
    this.#rolledBackFrom = null;
    place.keyIsGone(from);
    this.#epoch++;
  }

  #tellGap(gap: Gap, newest: EventId | null): void {
    // An end may be among what is missing. The run looks for it too, but only once.
    this.#mark = undefined;
    this.observer.onGap(gap, newest);
  }

  #deliver(rows: readonly Reply[], start: number, now: number): void {
    const { settings } = this.host;
    const count = rows.length - start;
    if (count <= 0) return;
    const taken = takeEntries(rows, start, settings.duplicates, this.#epoch);
    this.#place.advance(idOf(rows.at(-1)!), count, settings.streamTtlMs, now);
    if (taken.dropped > 0) settings.duplicateDropped(taken.dropped);
    if (taken.entries.length > 0) this.observer.onEntries(taken.entries);
  }

  #afterReply(): void {
    if (this.isClosed) return;
    if (this.#state === IDLE && (this.#dirty || this.#needsProof)) this.#request();
    // A rollback is not over before its first page has been read.
    if (this.#rolledBackFrom !== null || this.#state === WALK) return;
    this.failingSince = 0;
    this.#failures = 0;
    if (this.isInOutage) {
      this.isInOutage = false;
      this.observer.onRecovered();
    }
    this.host.settled(this);
  }

  /** Consecutive failures; a MOVED that leads nowhere is one. */
  get failures(): number {
    return this.#failures;
  }

  #fail(error: ReplyError): void {
    this.#lowest = null;
    if (this.isStarted) this.#needsProof = true;
    const now = performance.now();
    if (this.failingSince === 0) this.failingSince = now;
    this.retryAt = now + backoffMs(this.#failures++);
    this.host.settled(this);
    this.host.failed(this, error);
  }
}
