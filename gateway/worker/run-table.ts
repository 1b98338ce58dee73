/** The runs that this worker's clients watch: one reader and one ring each, kept for a while after the last client has left. */
import type { Broker, BrokerLog, Position } from "../broker/broker.ts";
import { RequestError } from "../errors.ts";
import type { Brakes } from "../overload/overload.ts";
import { OverloadedError } from "../overload/overloaded-error.ts";
import { RingBudget } from "../stream/ring-budget.ts";
import { Run } from "../stream/run.ts";
import type { RunHost, RunSettings, StreamCounters } from "../stream/run-host.ts";
import type { CloseReason } from "../stream/sink.ts";
import { Subscriber } from "../stream/subscriber.ts";
import { cut, drop, fail, firstLook, release, tend } from "../stream/tending.ts";
import { Wheel } from "../stream/wheel.ts";
import { ClaimedSlot, type SlotOwner } from "./claimed-slot.ts";
import type { OpenRequest, Slot, Streams, SubscriberCounts } from "./streams.ts";
import { Turns } from "./turns.ts";
import { WatchedRun } from "./watched-run.ts";

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
  rejected(reason: "capacity" | "overload" | "subscribers"): void;
}

export class RunTable implements Streams, RunHost, SlotOwner, Brakes {
  readonly counters: ConnectionCounters;
  readonly #broker: Broker;
  /** Shared with all runs. */
  readonly #settings: TableSettings & { coalesceMs: number };
  readonly #coalesceMs: number;
  readonly #counts: SubscriberCounts;
  readonly #log: BrokerLog;
  readonly #runs = new Map<string, WatchedRun>();
  /** Runs without a reader, those that have been so longest first, with the time since when. */
  readonly #idle = new Map<string, number>();
  /** Runs served lately, which hold what spares work in a wave of readers. */
  readonly #warm = new Set<Run>();
  readonly #budget: RingBudget;
  readonly #wheel: Wheel<Subscriber>;
  readonly #ticker: NodeJS.Timeout;
  readonly #turns: Turns;
  /** Open streams, in the order in which they came. */
  readonly #subscribers = new Set<Subscriber>();
  /** Places taken, streams about to open included. */
  #taken = 0;
  #isRefusing = false;

  constructor(broker: Broker, settings: TableSettings, counts: SubscriberCounts, counters: ConnectionCounters, log: BrokerLog) {
    this.#broker = broker;
    this.#settings = { ...settings };
    this.#coalesceMs = settings.coalesceMs;
    this.#counts = counts;
    this.counters = counters;
    this.#log = log;
    this.#budget = new RingBudget(settings.ringTotalBytes);
    const tickMs = Math.max(10, Math.min(500, settings.heartbeatMs / 30, settings.stallMs / 30, settings.idleGraceMs / 4));
    this.#wheel = new Wheel(tickMs, 128, this.now());
    this.#turns = new Turns(this.now, this.#failed);
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

  /** Milliseconds that only rise, as whole numbers. */
  readonly now = (): number => Math.floor(performance.now());

  // --- for the routes --------------------------------------------------------------------------------------------------------

  claim(runId: string): Slot | Promise<Slot> {
    if (this.#isRefusing) {
      this.counters.rejected("overload");
      throw new OverloadedError();
    }
    if (this.#taken >= this.#settings.maxConnections) {
      this.counters.rejected("capacity");
      throw new RequestError("PENSTOCK_AT_CAPACITY", 503, "This server holds as many streams as it may; retry shortly.");
    }
    this.#taken++;
    const granted = this.#counts.claim(runId);
    return typeof granted === "boolean" ? this.#slot(runId, granted) : granted.then((isGranted) => this.#slot(runId, isGranted));
  }

  unclaim(runId: string): void {
    this.#taken--;
    this.#counts.release(runId);
  }

  open(runId: string, request: OpenRequest): Subscriber {
    const at = this.now();
    const { run } = this.#runs.get(runId) ?? this.#watch(runId);
    this.#idle.delete(runId);
    const { sink, filter, position, tail, expiresAt } = request;
    const subscriber = new Subscriber(run, sink, filter, position, tail, expiresAt, at);
    const { maxAgeMs } = this.#settings;
    if (maxAgeMs > 0) subscriber.ageAt = at + Math.round(maxAgeMs * (0.8 + 0.4 * Math.random()));
    this.#subscribers.add(subscriber);
    this.counters.opened();
    run.join(subscriber);
    this.#wheel.schedule(subscriber, firstLook(subscriber, at));
    return subscriber;
  }

  // --- for the runs ----------------------------------------------------------------------------------------------------------

  readPage(run: Run, position: Position | null, limit: number): void {
    this.#broker.readPage(run.id, position, limit).then(
      (page) => {
        this.#warm.add(run);
        this.#guard(run, () => run.pageRead(position, page));
      },
      (error: unknown) => {
        // Once an outage, not at every try.
        if (!run.isInOutage) this.#log.warn({ run: run.id, error: messageOf(error) }, "history could not be read");
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
    const now = this.now();
    if (at > now) {
      watched.callAt(at, now, () => this.#flush(run));
      return;
    }
    watched.stopTimer();
    this.#flush(run);
  }

  serveSoon(subscriber: Subscriber): void {
    this.#warm.add(subscriber.run);
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
    const { run } = subscriber;
    const at = this.now();
    this.#wheel.cancel(subscriber);
    this.#subscribers.delete(subscriber);
    this.counters.closed(reason, at - subscriber.openedAt);
    this.unclaim(run.id);
    if (run.subscribers.size === 0 && this.#runs.get(run.id)?.run === run) this.#idle.set(run.id, at);
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

  // --- under overload --------------------------------------------------------------------------------------------------------

  /** Streams whose socket is full. */
  get blocked(): number {
    let count = 0;
    for (const subscriber of this.#subscribers) if (subscriber.blocked) count++;
    return count;
  }

  shrinkRings(on: boolean): void {
    if (on) this.#budget.squeeze();
    else this.#budget.relax();
  }

  widenCoalescing(on: boolean): void {
    const widened = Math.min(MOST_COALESCE_MS, COALESCE_FACTOR * Math.max(LEAST_COALESCE_MS, this.#coalesceMs));
    this.#settings.coalesceMs = on ? Math.max(this.#coalesceMs, widened) : this.#coalesceMs;
  }

  dropSlowest(share: number): number {
    const since = this.now() - SLOW_MS;
    const slow = [...this.#subscribers].filter(({ blocked, blockedSince }) => blocked && blockedSince <= since);
    slow.sort((a, b) => a.blockedSince - b.blockedSince);
    const dropped = slow.slice(0, Math.ceil(this.#subscribers.size * share));
    for (const subscriber of dropped) this.#guard(subscriber.run, () => drop(subscriber));
    return dropped.length;
  }

  refuseNew(on: boolean): void {
    this.#isRefusing = on;
  }

  // --- draining --------------------------------------------------------------------------------------------------------------

  /**
   * Lets go of every stream within `seconds`, in slices of at most a thousand a second while that suffices, so that they come back
   * elsewhere spread out. One whose socket is full goes when it drains; what has not by then is cut with `gap: shutdown`.
   */
  async drain(seconds: number, frames: "penstock" | "zenml"): Promise<void> {
    const deadline = this.now() + seconds * 1000;
    const slices = Math.max(1, Math.floor((seconds * 1000 * 0.8) / SLICE_MS));
    const perSlice = Math.max(100, Math.ceil(this.#subscribers.size / slices));
    while (this.#subscribers.size > 0 && this.now() < deadline) {
      let left = perSlice;
      for (const subscriber of this.#subscribers) {
        if (left === 0) break;
        if (subscriber.leaving !== null) continue;
        left--;
        this.#guard(subscriber.run, () => release(subscriber, frames === "zenml" ? "zenml" : "shutdown"));
      }
      await new Promise((resolve) => setTimeout(resolve, Math.min(SLICE_MS, Math.max(0, deadline - this.now()))));
    }
    this.#cutAll(frames);
  }

  close(): void {
    clearInterval(this.#ticker);
    this.#cutAll("penstock");
    for (const runId of [...this.#runs.keys()]) this.#drop(runId);
  }

  // ---------------------------------------------------------------------------------------------------------------------------

  #slot(runId: string, granted: boolean): Slot {
    if (granted) return new ClaimedSlot(this, runId);
    this.#taken--;
    this.counters.rejected("subscribers");
    throw new RequestError(
      "PENSTOCK_TOO_MANY_SUBSCRIBERS",
      503,
      "This run has as many subscribers as streaming.maxSubscribersPerStream allows; close one or retry shortly.",
    );
  }

  #watch(runId: string): WatchedRun {
    const watched = new WatchedRun(new Run(runId, this.#settings, this, this.now), this.#failed);
    watched.watch = this.#broker.watch(runId, watched);
    this.#runs.set(runId, watched);
    return watched;
  }

  #flush(run: Run): void {
    this.#warm.add(run);
    this.#turns.flush(run);
  }

  #tick(): void {
    const at = this.now();
    this.#wheel.advance(at, (subscriber) => {
      this.#guard(subscriber.run, () => {
        const next = tend(subscriber, at);
        if (next !== Number.POSITIVE_INFINITY) this.#wheel.schedule(subscriber, next);
      });
    });
    for (const [runId, since] of this.#idle) {
      if (at - since < this.#settings.idleGraceMs) break;
      this.#drop(runId);
    }
    for (const run of this.#warm) if (!run.cool(at)) this.#warm.delete(run);
  }

  #drop(runId: string): void {
    this.#idle.delete(runId);
    const watched = this.#runs.get(runId);
    if (watched === undefined) return;
    this.#runs.delete(runId);
    this.#budget.remove(watched.run);
    this.#warm.delete(watched.run);
    watched.stopTimer();
    watched.watch?.close();
  }

  #cutAll(frames: "penstock" | "zenml"): void {
    for (const subscriber of this.#subscribers) this.#guard(subscriber.run, () => cut(subscriber, frames));
  }

  #guard(run: Run, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failed(run, error);
    }
  }

  /** A fault of ours in one run: its streams end with `stream_failed`, and come back to a fresh ring. */
  readonly #failed = (run: Run, error: unknown): void => {
    this.#log.error({ run: run.id, error: stackOf(error) }, "a run failed and was dropped");
    if (this.#runs.get(run.id)?.run === run) this.#drop(run.id);
    for (const subscriber of [...run.subscribers.all()]) {
      try {
        fail(subscriber);
      } catch (second) {
        this.#log.error({ run: run.id, error: stackOf(second) }, "a stream of a run that failed could not be ended");
      }
    }
  };
}

const SLICE_MS = 100;
const COALESCE_FACTOR = 4;
/** Where less is set, or none at all, it is widened from here. */
const LEAST_COALESCE_MS = 10;
const MOST_COALESCE_MS = 1_000;
/** Every socket is full for a moment now and then. */
const SLOW_MS = 1_000;

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
