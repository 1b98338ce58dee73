/** How long to wait before a worker that ended by itself is started again. */

/** A worker that has lived so long was a good one: the next end is the first again. */
const SETTLED_MS = 60_000;
const FIRST_MS = 500;
const MOST_MS = 30_000;

export class BackOff {
  #failures = 0;

  /** A worker has ended after so many milliseconds. Returns how long to wait: nothing the first time, then up to 0.5 s · 2ⁿ, 30 s at most. */
  ended(livedMs: number, chance: () => number = Math.random): number {
    if (livedMs >= SETTLED_MS) this.#failures = 0;
    const failures = this.#failures++;
    if (failures === 0) return 0;
    return Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures, 10)) * (0.5 + 0.5 * chance());
  }
}
