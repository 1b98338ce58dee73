/** Keeps all rings of a worker within one number of bytes: the coldest give way first, and their slow readers go on from history. */
import type { Run } from "./run.ts";

export class RingBudget {
  bytes = 0;
  readonly #maxBytes: number;
  /** Runs whose rings hold something, least lately grown first. */
  readonly #order = new Set<Run>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
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
