/** What a ring knows of its gaps beyond their place in the order: what they span beside it, and what went with those that fell off. */
import { compareEventIds, type EventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Gap } from "../broker/broker.ts";
import { GAP, type LogEntry } from "./log-entry.ts";

export class RingGaps {
  /** Offset of the last gap that was evicted. */
  lastEvicted = -1;
  /** The last few gaps, evicted ones as well, with their offsets. */
  #last: { readonly offset: number; readonly entry: LogEntry }[] = [];
  /** A gap may span beyond entries that follow on it: up to there, what is left of this epoch has holes by gaps that were evicted. */
  #holesUpTo: EventId = ZERO_ID;
  #kept = 0;

  pushed(entry: LogEntry, offset: number): void {
    this.#kept++;
    this.#last = [...this.#last.slice(1 - REMEMBERED), { offset, entry }];
    if (entry.gap!.reason === "rollback") this.#holesUpTo = ZERO_ID;
  }

  /** `epoch`: offset behind the last rollback, whose gap stands just before it. */
  evicted(entry: LogEntry, offset: number, epoch: number): void {
    this.#kept--;
    this.lastEvicted = offset;
    if (offset >= epoch - 1 && compareEventIds(spansTo(entry), this.#holesUpTo) > 0) this.#holesUpTo = spansTo(entry);
  }

  /** The gaps between two offsets, evicted ones as well, that a reader is still to hear of, as one; null when there are none. */
  between(from: number, to: number, concerns: (gap: LogEntry) => boolean): Gap | null {
    const unheard = this.#last
      .filter(({ offset, entry }) => offset >= from && offset < to && concerns(entry))
      .map(({ entry }) => entry.gap!);
    const [first, last] = [unheard[0], unheard.at(-1)];
    if (first === undefined || last === undefined || first === last) return first ?? null;
    const reason = unheard.some((gap) => gap.reason === "rollback") ? "rollback" : "retention";
    return { reason, from: first.from, to: last.to, missed: null };
  }

  /** True when a gap before `place` spans beyond `id`: entries between them may be missing. */
  spanBeyond(id: EventId, place: number, ring: { at(offset: number): LogEntry; first: number; epoch: number }): boolean {
    if (compareEventIds(id, this.#holesUpTo) < 0) return true;
    if (this.#kept === 0) return false;
    for (let offset = Math.max(ring.first, ring.epoch - 1); offset < place; offset++) {
      const entry = ring.at(offset);
      if (entry.type === GAP && compareEventIds(id, spansTo(entry)) < 0) return true;
    }
    return false;
  }
}

/** True for a loss that was found when entries behind it had been handed over. */
export function isLate({ id, gap }: LogEntry): boolean {
  return gap!.reason !== "rollback" && gap!.from !== null && id !== "" && compareEventIds(gap!.from, id) < 0;
}

function spansTo({ gap, newest }: LogEntry): EventId {
  return gap!.to ?? newest ?? ZERO_ID;
}

const REMEMBERED = 8;
