/** The end of a run as a state: known from the end entry or its mark, put off for stragglers, taken back when the run goes on. */
import { compareEventIds, type EventId, millisecondsOf } from "../../protocol/event-id.ts";
import { END_DELAY_MS, STRAGGLER_MS } from "../../protocol/wire.ts";

export class RunEnd {
  /** Id of the end entry; null while the run goes on. */
  id: EventId | null = null;
  /** Live readers hear of the end from this time on, in milliseconds of the run's clock. */
  dueAt = 0;
  /** Id that the broker's mark has; null without one. */
  marked: EventId | null = null;

  /** An end entry or mark was met. `wallNow` tells an old end, which needs no delay, from one that has just come. */
  met(id: EventId, now: number, wallNow: number): void {
    if (this.id !== null && compareEventIds(id, this.id) <= 0) return;
    const age = wallNow - millisecondsOf(id);
    this.dueAt = age > END_DELAY_MS ? now : now + END_DELAY_MS;
    this.id = id;
  }

  /** An entry behind the end was met; true when it is too late to be a straggler, so that the run goes on. */
  reopenedBy(id: EventId): boolean {
    if (this.id === null || !isBeyond(id, this.id)) return false;
    this.id = null;
    return true;
  }

  /** True once readers that have everything may be told. */
  isDue(now: number): boolean {
    return this.id !== null && now >= this.dueAt;
  }
}

/** True when an entry is too late to belong to a run that ended at `endedId`. */
export function isBeyond(id: EventId, endedId: EventId): boolean {
  return millisecondsOf(id) > millisecondsOf(endedId) + STRAGGLER_MS;
}
