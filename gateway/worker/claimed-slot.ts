/** A place for one stream, from the claim to the close. */
import type { Subscriber } from "../stream/subscriber.ts";
import type { OpenRequest, Slot, Subscription } from "./streams.ts";

/** Where the place came from, and goes back to. */
export interface SlotOwner {
  open(runId: string, request: OpenRequest): Subscriber;
  unclaim(runId: string): void;
  /** Milliseconds of the clock that runs are served by. */
  now(): number;
}

export class ClaimedSlot implements Slot, Subscription {
  readonly #owner: SlotOwner;
  readonly #runId: string;
  #subscriber: Subscriber | null = null;

  constructor(owner: SlotOwner, runId: string) {
    this.#owner = owner;
    this.#runId = runId;
  }

  open(request: OpenRequest): Subscription {
    try {
      this.#subscriber = this.#owner.open(this.#runId, request);
    } catch (error) {
      this.release();
      throw error;
    }
    return this;
  }

  release(): void {
    this.#owner.unclaim(this.#runId);
  }

  drained(): void {
    this.#subscriber!.run.drained(this.#subscriber!);
  }

  progressed(): void {
    this.#subscriber!.blockedSince = this.#owner.now();
  }

  closed(): void {
    this.#subscriber!.run.remove(this.#subscriber!, "client");
  }
}
