/** The readers of one node: in a list to go round, and by key. Several may read one key. */
import type { RunReader } from "./reader.ts";

export class ReaderSet {
  readonly #all: RunReader[] = [];
  readonly #byKey = new Map<string, RunReader>();

  get all(): readonly RunReader[] {
    return this.#all;
  }

  add(reader: RunReader): void {
    reader.index = this.#all.length;
    this.#all.push(reader);
    reader.sibling = this.#byKey.get(reader.key) ?? null;
    this.#byKey.set(reader.key, reader);
  }

  remove(reader: RunReader): void {
    const last = this.#all.pop();
    if (last !== undefined && last !== reader) {
      this.#all[reader.index] = last;
      last.index = reader.index;
    }
    let at = this.#byKey.get(reader.key) ?? null;
    if (at === reader) {
      if (reader.sibling === null) this.#byKey.delete(reader.key);
      else this.#byKey.set(reader.key, reader.sibling);
    } else {
      while (at !== null && at.sibling !== reader) at = at.sibling;
      if (at !== null) at.sibling = reader.sibling;
    }
    reader.sibling = null;
  }

  has(key: string): boolean {
    return this.#byKey.has(key);
  }

  wake(key: string): void {
    for (let reader = this.#byKey.get(key) ?? null; reader !== null; reader = reader.sibling) reader.wake();
  }
}
