/** A list that grows at its end and shrinks at its start, both in constant time over the long run, and can be searched by index. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** The item at `index`, counted from the oldest; the caller keeps inside `0 … length - 1`. */
  at(index: number): T {
    return this.#items[this.#head + index] as T;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Takes the oldest item out; the caller knows that there is one. */
  shift(): T {
    const item = this.#items[this.#head] as T;
    this.#items[this.#head++] = undefined;
    if (this.#head >= COMPACT_AT && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  slice(start: number, end: number): T[] {
    return this.#items.slice(this.#head + start, this.#head + end) as T[];
  }
}

const COMPACT_AT = 64;
