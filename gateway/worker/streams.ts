/** What the routes see of the run table: a slot is claimed before a stream's head is sent, and given back exactly once. */
import type { Position } from "../broker/broker.ts";
import type { Filter } from "../stream/filter.ts";
import type { Sink } from "../stream/sink.ts";

export interface OpenRequest {
  /** Where to go on; null is the oldest kept entry, unless `tail` says otherwise. */
  readonly position: Position | null;
  /** Begin with the last so many entries, 0 for live ones only; null when not asked for. */
  readonly tail: number | null;
  readonly filter: Filter;
  /** Milliseconds of the wall clock at which the right to read ends; null when it does not. */
  readonly expiresAt: number | null;
  readonly sink: Sink;
}

export interface Streams {
  /** Takes one of a run's places, at once where that needs no question. Throws RequestError 503 when the run or this worker has no more. */
  claim(runId: string): Slot | Promise<Slot>;
}

export interface Slot {
  /** Begins the stream. The first write comes later, never inside this call. */
  open(request: OpenRequest): Subscription;
  /** Gives the place back unused. */
  release(): void;
}

export interface Subscription {
  /** The socket takes bytes again. */
  drained(): void;
  /** Some bytes have left, but the socket is still full: the client reads, if slowly. */
  progressed?(): void;
  /** The client is gone; nothing may be written any more. */
  closed(): void;
}

/** How many readers each run has over the whole pod: 100 a run hold for all workers together. */
export interface SubscriberCounts {
  /** False when the run has no place left. */
  claim(runId: string): boolean | Promise<boolean>;
  release(runId: string): void;
}

/** The readers that this worker has of each run. */
export class ReaderCounts {
  readonly #counts = new Map<string, number>();

  of(runId: string): number {
    return this.#counts.get(runId) ?? 0;
  }

  add(runId: string): void {
    this.#counts.set(runId, this.of(runId) + 1);
  }

  remove(runId: string): void {
    const count = this.#counts.get(runId)!;
    if (count === 1) this.#counts.delete(runId);
    else this.#counts.set(runId, count - 1);
  }
}

/** The counts of a pod with one worker. */
export class LocalCounts implements SubscriberCounts {
  readonly #counts = new ReaderCounts();
  readonly #most: number;

  constructor(mostPerRun: number) {
    this.#most = mostPerRun;
  }

  claim(runId: string): boolean {
    if (this.#counts.of(runId) >= this.#most) return false;
    this.#counts.add(runId);
    return true;
  }

  release(runId: string): void {
    this.#counts.remove(runId);
  }
}
