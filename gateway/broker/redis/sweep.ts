/** Goes round a list so that each item is met once a period, a few at each tick. */
export class Sweep {
  readonly #periodMs: number;
  #at = 0;
  #lastTick = 0;

  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  start(now: number): void {
    this.#lastTick = now;
  }

  /** Visits those that are due at `now`. The list may change between ticks; then one may be met a little early or late. */
  tick<Item>(items: readonly Item[], now: number, visit: (item: Item) => void): void {
    const due = Math.floor(((now - this.#lastTick) / this.#periodMs) * items.length);
    // Less than one: its share of time is kept for the next tick.
    if (due > 0 || items.length === 0) this.#lastTick = now;
    for (let left = Math.min(due, items.length); left > 0 && items.length > 0; left--) {
      if (this.#at >= items.length) this.#at = 0;
      visit(items[this.#at++]!);
    }
  }
}
