/**
 * Spreads the work of serving over turns of the event loop, so that a fan-out to thousands neither runs inside a callback of
 * uWebSockets.js (one socket can be corked per loop, and there the request being handled already is) nor holds up everything else.
 */
import { later } from "../later.ts";
import type { Run } from "../stream/run.ts";
import type { Subscriber } from "../stream/subscriber.ts";

/** Most writes of one turn, give or take what one subscriber gets in a row: 500 take about 3 ms. */
const WRITES_PER_TURN = 500;

export class Turns {
  readonly #now: () => number;
  readonly #failed: (run: Run, error: unknown) => void;
  #ready: Subscriber[] = [];
  #readyFrom = 0;
  readonly #runs: Run[] = [];
  readonly #queued = new Set<Run>();
  #planned = false;

  /** `failed` hears of what a run threw: a fault of ours that must not take the other runs along. */
  constructor(now: () => number, failed: (run: Run, error: unknown) => void) {
    this.#now = now;
    this.#failed = failed;
  }

  serve(subscriber: Subscriber): void {
    if (subscriber.queued) return;
    subscriber.queued = true;
    this.#ready.push(subscriber);
    this.#plan();
  }

  flush(run: Run): void {
    if (this.#queued.has(run)) return;
    this.#queued.add(run);
    this.#runs.push(run);
    this.#plan();
  }

  #plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    later(this.#turn, undefined);
  }

  readonly #turn = (): void => {
    let left = WRITES_PER_TURN;
    const now = this.#now();
    while (left > 0 && this.#readyFrom < this.#ready.length) {
      const subscriber = this.#ready[this.#readyFrom++]!;
      subscriber.queued = false;
      try {
        left -= Math.max(1, subscriber.run.serve(subscriber, now));
      } catch (error) {
        left--;
        this.#failed(subscriber.run, error);
      }
    }
    if (this.#readyFrom === this.#ready.length) {
      this.#ready = [];
      this.#readyFrom = 0;
    }
    let rounds = this.#runs.length;
    while (left > 0 && rounds-- > 0) {
      const run = this.#runs.shift()!;
      // Off the list first: what the flush plans for later must be able to queue the run again.
      this.#queued.delete(run);
      try {
        left -= Math.max(1, run.flush(now, left));
        if (run.isFlushing) this.flush(run);
      } catch (error) {
        left--;
        this.#failed(run, error);
      }
    }
    this.#planned = this.#readyFrom < this.#ready.length || this.#runs.length > 0;
    // Others have their turn before.
    if (this.#planned) setImmediate(this.#turn);
  };
}
