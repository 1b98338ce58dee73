/** The end of a run as a state: known from the end entry or its mark, put off for stragglers, taken back when the run goes on. */
import { compareEventIds, type EventId, millisecondsOf } from "../../protocol/event-id.ts";
import { STRAGGLER_MS } from "../../protocol/wire.ts";

export class RunEnd {
  /** Readers hear of the end from this time on, in milliseconds of the run's clock. */
  dueAt = 0;
  /** True when a flush has gone by since it came due: who comes to the head later is told there. */
  isTold = false;
  /** Id that the broker's mark has, as far as is known; null without one. */
  marked: EventId | null = null;
  /** The end that the ring has come by. */
  #reached: EventId | null = null;
  /** A later one that a page tells of. The ring may have entries before it still to come, or it may be old news. */
  #hinted: EventId | null = null;

  /** Id of the end; null while the run goes on. */
  get id(): EventId | null {
    return this.#hinted ?? this.#reached;
  }

  /** True when the ring has all that lies before the end. */
  get isReached(): boolean {
    return this.#hinted === null;
  }

  /** The reader has met an end entry or the mark. */
  reach(id: EventId, dueAt: number): void {
    if (this.#reached !== null && compareEventIds(id, this.#reached) <= 0) return;
    this.#reached = id;
    if (this.#hinted !== null && compareEventIds(id, this.#hinted) < 0) return;
    const isNews = id !== this.#hinted;
    this.#hinted = null;
    if (isNews) this.#putOff(dueAt);
  }

  /** A page has an end entry or the mark. */
  hint(id: EventId, dueAt: number): void {
    if (this.id !== null && compareEventIds(id, this.id) <= 0) return;
    this.#hinted = id;
    this.#putOff(dueAt);
  }

  /** Entries behind it may have come and gone unread: whether it still holds is for the broker to say. */
  doubt(): void {
    this.#hinted ??= this.#reached;
    this.#reached = null;
  }

  /** What a page told of is not so any more. */
  dropHint(): void {
    this.#hinted = null;
    this.isTold = false;
  }

  /** The run has an entry with this id; one too late to be a straggler takes the end back. */
  wentOnTo(id: EventId): void {
    if (this.id === null || !isBeyond(id, this.id)) return;
    // Who wrote that end may have marked it, unheard here: it is to be removed all the same.
    this.marked ??= this.id;
    this.forget();
  }

  forget(): void {
    this.#reached = null;
    this.dropHint();
  }

  /** True once readers that have everything may be told. */
  isDue(now: number): boolean {
    return now >= this.dueAt && this.id !== null;
  }

  #putOff(dueAt: number): void {
    this.dueAt = dueAt;
    this.isTold = false;
  }
}

/** True when an entry is too late to belong to a run that ended at `endedId`. */
export function isBeyond(id: EventId, endedId: EventId): boolean {
  return millisecondsOf(id) > millisecondsOf(endedId) + STRAGGLER_MS;
}
