/** How late the event loop is, smoothed: one long pause is a pause, many are too much work. Pure. */

/** Over about so long. */
const SMOOTHING_MS = 3_000;
/** No single sample counts for longer than this: a process that was stopped for a minute is not overloaded. */
const LONGEST_SAMPLE_MS = 500;

export class LoopLag {
  readonly #worstMs: number;
  milliseconds = 0;

  /** A sample counts as `worstMs` at most. */
  constructor(worstMs: number) {
    this.#worstMs = worstMs;
  }

  /** A timer has fired `lateMs` late, `sinceMs` after the one before. */
  sample(lateMs: number, sinceMs: number): void {
    const weight = 1 - Math.exp(-Math.min(sinceMs, LONGEST_SAMPLE_MS) / SMOOTHING_MS);
    this.milliseconds += (Math.min(Math.max(0, lateMs), this.#worstMs) - this.milliseconds) * weight;
  }
}
