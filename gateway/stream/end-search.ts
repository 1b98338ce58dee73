/**
 * A look into history for an end that the ring does not have: it may lie just before a tail that is all stragglers, or among entries
 * that were lost, with its mark as all that tells of it.
 */
import { compareEventIds, type EventId, millisecondsOf, ZERO_ID } from "../../protocol/event-id.ts";
import { END_DELAY_MS, STRAGGLER_MS } from "../../protocol/wire.ts";
import type { HistoryPage, Position, Tail } from "../broker/broker.ts";
import { isBeyond } from "./run-end.ts";

export class EndSearch {
  /** Where to read next; an object of its own, by which the answer is known. */
  from: Position;
  /** When to begin; null once that has been done. */
  at: number | null;
  /** Id up to which to read; null for one page. */
  readonly #until: EventId | null;

  constructor(from: Position, until: EventId | null, at: number) {
    this.from = from;
    this.#until = until;
    this.at = at;
  }

  /** Before a tail: null where none is needed. */
  static beforeTail({ complete, entries, newest }: Tail, now: number): EndSearch | null {
    const first = entries[0]?.id;
    if (complete || first === undefined || isBeyond(newest ?? first, first)) return null;
    return EndSearch.before(first, now);
  }

  /** For an end of which the entry with this id is a straggler. A run that goes on is better left alone, so it waits a moment. */
  static before(id: EventId, now: number): EndSearch {
    const since = millisecondsOf(id) - STRAGGLER_MS;
    return new EndSearch({ id: since > 0 ? `${since}-0` : ZERO_ID, exact: false }, id, now + END_DELAY_MS);
  }

  /** Where the stream is gone there is only the mark. */
  static ofMark(now: number): EndSearch {
    return new EndSearch({ id: ZERO_ID, exact: false }, null, now);
  }

  /** True when an entry shows that no end before it could still hold. */
  isSettledBy(id: EventId): boolean {
    return this.#until !== null && isBeyond(id, this.#until);
  }

  /** Takes the next page; false when there is none to take. */
  goOn({ next, atHead }: HistoryPage): boolean {
    if (next === null || atHead || this.#until === null || compareEventIds(next.id, this.#until) >= 0) return false;
    this.from = next;
    return true;
  }
}
