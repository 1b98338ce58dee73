/** Keeps all rings of a worker within one number of bytes: the coldest give way first, and their slow readers go on from history. */
import type { Run } from "./run.ts";

export class RingBudget {
  bytes = 0;
  /** `#fullBytes`, or less while memory is short. */
  #maxBytes: number;
  readonly #fullBytes: number;
  /** Runs whose rings hold something, least lately grown first. */
  readonly #order = new Set<Run>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#fullBytes = maxBytes;
  }

  /** A run's ring has grown or shrunk by `bytes`. */
  changed(run: Run, bytes: number): void {
    this.bytes += bytes;
    this.#order.delete(run);
    this.#order.add(run);
    if (this.bytes > this.#maxBytes) this.shrinkTo(this.#maxBytes * AFTER_SHRINKING);
  }

  remove(run: Run): void {
    if (this.#order.delete(run)) this.bytes -= run.ring.bytes;
  }

  /** Memory is short: no more than half of what is held now, but not so little that readers could not live on it. */
  squeeze(): void {
    this.#maxBytes = Math.max(this.#fullBytes * LEAST_SHARE, Math.min(this.#maxBytes, this.bytes) / 2);
    this.shrinkTo(this.#maxBytes);
  }

  relax(): void {
    this.#maxBytes = this.#fullBytes;
  }

  /** Empties rings, coldest first, until at most `maxBytes` are held. */
  shrinkTo(maxBytes: number): void {
    for (const run of this.#order) {
      if (this.bytes <= maxBytes) return;
      const before = run.ring.bytes;
      run.ring.shrink(Math.max(0, before - (this.bytes - maxBytes)));
      this.bytes -= before - run.ring.bytes;
      if (run.ring.bytes === 0) this.#order.delete(run);
    }
  }
}

/** Shrinking a little further than asked spares the next events the same work. */
const AFTER_SHRINKING = 0.95;
const LEAST_SHARE = 1 / 8;
