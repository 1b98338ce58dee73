/** The subscribers of a run, in no order, so that one can go at any moment in constant time, also in the midst of a pass over all. */
import type { Subscriber } from "./subscriber.ts";

export class SubscriberList {
  #members: Subscriber[] = NOBODY;
  /** How many a pass has come by; -1 when none is under way. */
  #passed = -1;

  get size(): number {
    return this.#members.length;
  }

  /** To be looked at only: whoever closes one meanwhile takes a copy. */
  all(): readonly Subscriber[] {
    return this.#members;
  }

  add(subscriber: Subscriber): void {
    // Most runs have one or two readers; grown from nothing, an array would hold room for 17.
    if (this.#members.length === 0) {
      this.#members = [subscriber];
      subscriber.index = 0;
    } else this.#put(subscriber, this.#members.length);
  }

  remove(subscriber: Subscriber): void {
    const last = this.#members.pop()!;
    if (last === subscriber) return;
    let hole = subscriber.index;
    if (hole < this.#passed && this.#passed <= this.#members.length) {
      // The pass has not come by the last one yet: it goes behind all that it has come by.
      this.#passed--;
      this.#put(this.#members[this.#passed]!, hole);
      hole = this.#passed;
    }
    this.#put(last, hole);
  }

  get isPassing(): boolean {
    return this.#passed >= 0;
  }

  startPass(): void {
    this.#passed = 0;
  }

  /** The next one of the pass; null when it is over. Each that is there all the while comes once. */
  next(): Subscriber | null {
    if (this.#passed < this.#members.length) return this.#members[this.#passed++]!;
    this.#passed = -1;
    return null;
  }

  #put(subscriber: Subscriber, index: number): void {
    this.#members[index] = subscriber;
    subscriber.index = index;
  }
}

const NOBODY: Subscriber[] = [];
