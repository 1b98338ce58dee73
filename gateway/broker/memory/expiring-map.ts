/** Remembers values for a fixed time, and no more than a fixed number of them: the oldest go first. */
export class ExpiringMap<V> {
  readonly #items = new Map<string, { readonly value: V; readonly expiresAt: number }>();
  readonly #lifeMs: number;
  readonly #maxItems: number;
  readonly #now: () => number;

  constructor(lifeMs: number, maxItems: number, now: () => number) {
    this.#lifeMs = lifeMs;
    this.#maxItems = maxItems;
    this.#now = now;
  }

  get size(): number {
    return this.#items.size;
  }

  get(key: string): V | undefined {
    const item = this.#items.get(key);
    return item !== undefined && item.expiresAt > this.#now() ? item.value : undefined;
  }

  /** Sets the value and starts its time again. */
  set(key: string, value: V): void {
    this.#items.delete(key);
    this.#items.set(key, { value, expiresAt: this.#now() + this.#lifeMs });
    this.sweep();
  }

  delete(key: string): void {
    this.#items.delete(key);
  }

  /** Drops what has expired and what is too much. All live equally long, so the map's own order is that of expiry. */
  sweep(): void {
    const now = this.#now();
    for (const [key, item] of this.#items) {
      if (item.expiresAt > now && this.#items.size <= this.#maxItems) return;
      this.#items.delete(key);
    }
  }
}
