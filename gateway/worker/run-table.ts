/** The runs that this worker's clients watch: one reader and one ring each, kept for a while after the last client has left. */
import type { Broker, BrokerLog, Position, Watch } from "../broker/broker.ts";
import { RequestError } from "../errors.ts";
import { RingBudget } from "../stream/ring-budget.ts";
import { Run } from "../stream/run.ts";
import type { RunHost, RunSettings, StreamCounters } from "../stream/run-host.ts";
import type { CloseReason } from "../stream/sink.ts";
import { NEVER, Subscriber } from "../stream/subscriber.ts";
import { Wheel } from "../stream/wheel.ts";
import type { OpenRequest, Slot, Streams, SubscriberCounts, Subscription } from "./streams.ts";
import { Turns } from "./turns.ts";

export interface TableSettings extends RunSettings {
  readonly idleGraceMs: number;
  readonly maxConnections: number;
  /** Streams live this long, ± 20 %; 0 for no limit. */
  readonly maxAgeMs: number;
  readonly ringTotalBytes: number;
}

/** What the table tells of connections, beside what the runs count. */
export interface ConnectionCounters extends StreamCounters {
  opened(): void;
  closed(reason: CloseReason, milliseconds: number): void;
  rejected(reason: "capacity" | "subscribers"): void;
}

export class RunTable implements Streams, RunHost {
  readonly counters: ConnectionCounters;
  readonly #broker: Broker;
  readonly #settings: TableSettings;
  readonly #counts: SubscriberCounts;
  readonly #log: BrokerLog;
  readonly #runs = new Map<string, WatchedRun>();
  /** Runs without a reader, those that have been so longest first, with the time since when. */
  readonly #idle = new Map<string, number>();
  readonly #reading = new Set<Run>();
  readonly #budget: RingBudget;
  readonly #wheel: Wheel<Subscriber>;
  readonly #ticker: NodeJS.Timeout;
  readonly #turns: Turns;
  /** Open streams, in the order in which they came. */
  readonly #subscribers = new Set<Subscriber>();
  /** Places taken, streams about to open included. */
  #taken = 0;

  constructor(broker: Broker, settings: TableSettings, counts: SubscriberCounts, counters: ConnectionCounters, log: BrokerLog) {
    this.#broker = broker;
    this.#settings = settings;
    this.#counts = counts;
    this.counters = counters;
    this.#log = log;
    this.#budget = new RingBudget(settings.ringTotalBytes);
    const tickMs = Math.max(10, Math.min(500, settings.heartbeatMs / 30, settings.stallMs / 30, settings.idleGraceMs / 4));
    this.#wheel = new Wheel(tickMs, 128, now());
    this.#turns = new Turns(now, (run, error) => this.#failed(run, error));
    this.#ticker = setInterval(() => this.#tick(), tickMs);
  }

  get connections(): number {
    return this.#subscribers.size;
  }

  get runs(): number {
    return this.#runs.size;
  }

  get ringBytes(): number {
    return this.#budget.bytes;
  }

  // --- for the routes --------------------------------------------------------------------------------------------------------

  claim(runId: string): Slot {
    if (this.#taken >= this.#settings.maxConnections) {
      this.counters.rejected("capacity");
      throw new RequestError("PENSTOCK_AT_CAPACITY", 503, "This server holds as many streams as it may; retry shortly.");
    }
    if (!this.#counts.claim(runId)) {
      this.counters.rejected("subscribers");
      throw new RequestError(
        "PENSTOCK_TOO_MANY_SUBSCRIBERS",
        503,
        "This run has as many subscribers as streaming.maxSubscribersPerStream allows; close one or retry shortly.",
      );
    }
    this.#taken++;
    return new ClaimedSlot(this, runId);
  }

  /** Ends the claim of a slot; called by the slot, once. */
  unclaim(runId: string): void {
    this.#taken--;
    this.#counts.release(runId);
  }

  open(runId: string, request: OpenRequest): Subscriber {
    const at = now();
    let watched = this.#runs.get(runId);
    if (watched === undefined) {
      watched = new WatchedRun(new Run(runId, this.#settings, this, now));
      this.#runs.set(runId, watched);
      watched.watch = this.#broker.watch(runId, watched.run);
    }
    this.#idle.delete(runId);
    const { sink, filter, position, tail, expiresAt } = request;
    const subscriber = new Subscriber(watched.run, sink, filter, position, tail, expiresAt, at);
    if (this.#settings.maxAgeMs > 0)
      subscriber.ageAt = Math.min(NEVER, at + Math.round(this.#settings.maxAgeMs * (0.8 + 0.4 * Math.random())));
    this.#subscribers.add(subscriber);
    this.counters.opened();
    watched.run.join(subscriber);
    this.#wheel.schedule(subscriber, watched.run.firstLook(subscriber, at));
    return subscriber;
  }

  // --- for the runs ----------------------------------------------------------------------------------------------------------

  readPage(run: Run, position: Position | null, limit: number): void {
    this.#reading.add(run);
    this.#broker.readPage(run.id, position, limit).then(
      (page) => this.#guard(run, () => run.pageRead(position, page)),
      (error: unknown) => {
        this.#log.warn({ run: run.id, error: messageOf(error) }, "history could not be read");
        this.#guard(run, () => run.pageFailed(position));
      },
    );
  }

  findTail(subscriber: Subscriber, count: number): void {
    const { run } = subscriber;
    this.#broker.findTail(run.id, count).then(
      (position) => this.#guard(run, () => run.tailFound(subscriber, position)),
      () => this.#guard(run, () => run.tailFound(subscriber, undefined)),
    );
  }

  flushAt(run: Run, at: number): void {
    const watched = this.#runs.get(run.id);
    if (watched?.run !== run) return;
    const delay = at - now();
    if (delay <= 0) {
      watched.stopTimer();
      this.#turns.flush(run);
    } else if (at < watched.timerAt) {
      watched.stopTimer();
      watched.timerAt = at;
      watched.timer = setTimeout(() => {
        watched.timerAt = NEVER;
        this.#turns.flush(run);
      }, delay);
    }
  }

  serveSoon(subscriber: Subscriber): void {
    this.#turns.serve(subscriber);
  }

  retryPagesLater(run: Run): void {
    setTimeout(() => this.#guard(run, () => run.retryPages()), 250 + Math.random() * 500).unref();
  }

  markEnded(run: Run, endedId: string): void {
    this.#broker.markEnded(run.id, endedId);
  }

  clearEnded(run: Run): void {
    this.#broker.clearEnded(run.id);
  }

  closed(subscriber: Subscriber, reason: CloseReason): void {
    this.#wheel.cancel(subscriber);
    this.#subscribers.delete(subscriber);
    this.counters.closed(reason, now() - subscriber.openedAt);
    this.unclaim(subscriber.run.id);
    if (subscriber.run.subscribers.length === 0) this.#idle.set(subscriber.run.id, now());
  }

  ringChanged(run: Run, bytes: number): void {
    this.#budget.changed(run, bytes);
  }

  wallNow(): number {
    return Date.now();
  }

  retryMs(): number {
    return 1_000 + Math.floor(Math.random() * 1_000);
  }

  // --- draining --------------------------------------------------------------------------------------------------------------

  /**
   * Lets go of every stream within `seconds`, in slices of at most a thousand a second while that suffices, so that they come back
   * elsewhere spread out. What cannot be written by then is cut with `gap: shutdown`.
   */
  async drain(seconds: number, frames: "penstock" | "zenml"): Promise<void> {
    const deadline = now() + seconds * 1000;
    const slices = Math.max(1, Math.floor((seconds * 1000 * 0.8) / SLICE_MS));
    const perSlice = Math.max(100, Math.ceil(this.#subscribers.size / slices));
    while (this.#subscribers.size > 0 && now() < deadline) {
      let left = perSlice;
      for (const subscriber of this.#subscribers) {
        if (left === 0) break;
        left--;
        if (frames === "zenml" && !subscriber.blocked) subscriber.run.cut(subscriber, "zenml");
        // A full socket goes to the back of the queue: it may drain before the time is over.
        else if (!subscriber.run.release(subscriber, "shutdown", now())) {
          this.#subscribers.delete(subscriber);
          this.#subscribers.add(subscriber);
        }
      }
      await new Promise((resolve) => setTimeout(resolve, Math.min(SLICE_MS, Math.max(0, deadline - now()))));
    }
    for (const subscriber of this.#subscribers) subscriber.run.cut(subscriber, frames);
  }

  close(): void {
    clearInterval(this.#ticker);
    for (const subscriber of this.#subscribers) subscriber.run.cut(subscriber, "penstock");
    for (const runId of [...this.#runs.keys()]) this.#drop(runId);
  }

  // ---------------------------------------------------------------------------------------------------------------------------

  #tick(): void {
    const at = now();
    this.#wheel.advance(at, (subscriber) => {
      const { run } = subscriber;
      this.#guard(run, () => {
        const next = run.tend(subscriber, at);
        if (next !== Number.POSITIVE_INFINITY) this.#wheel.schedule(subscriber, next);
      });
    });
    for (const [runId, since] of this.#idle) {
      if (at - since < this.#settings.idleGraceMs) break;
      this.#drop(runId);
    }
    for (const run of this.#reading) if (!run.expirePages(at)) this.#reading.delete(run);
  }

  #drop(runId: string): void {
    this.#idle.delete(runId);
    const watched = this.#runs.get(runId);
    if (watched === undefined) return;
    this.#runs.delete(runId);
    this.#budget.remove(watched.run);
    this.#reading.delete(watched.run);
    watched.stopTimer();
    watched.watch?.close();
  }

  #guard(run: Run, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failed(run, error);
    }
  }

  /** A fault of ours in one run: its streams end with `stream_failed`, and come back to a fresh ring. */
  #failed(run: Run, error: unknown): void {
    this.#log.error({ run: run.id, error: error instanceof Error ? error.stack : String(error) }, "a run failed and was dropped");
    if (this.#runs.get(run.id)?.run === run) this.#drop(run.id);
    for (const subscriber of [...run.subscribers]) run.fail(subscriber);
    this.#idle.delete(run.id);
  }
}

const SLICE_MS = 100;

class WatchedRun {
  readonly run: Run;
  watch: Watch | null = null;
  timer: NodeJS.Timeout | null = null;
  timerAt = NEVER;

  constructor(run: Run) {
    this.run = run;
  }

  stopTimer(): void {
    if (this.timerAt === NEVER) return;
    clearTimeout(this.timer!);
    this.timerAt = NEVER;
  }
}

class ClaimedSlot implements Slot, Subscription {
  readonly #table: RunTable;
  readonly #runId: string;
  #subscriber: Subscriber | null = null;

  constructor(table: RunTable, runId: string) {
    this.#table = table;
    this.#runId = runId;
  }

  open(request: OpenRequest): Subscription {
    this.#subscriber = this.#table.open(this.#runId, request);
    return this;
  }

  release(): void {
    this.#table.unclaim(this.#runId);
  }

  drained(): void {
    this.#subscriber!.run.drained(this.#subscriber!);
  }

  progressed(): void {
    this.#subscriber!.blockedSince = now();
  }

  closed(): void {
    this.#subscriber!.run.remove(this.#subscriber!, "client");
  }
}

/** Milliseconds that only rise, as whole numbers. */
function now(): number {
  return Math.floor(performance.now());
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
