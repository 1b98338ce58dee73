/** What a ring knows of its gaps beyond their place in the order: what they span beside it, and what went with those that fell off. */
import { compareEventIds, type EventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Gap } from "../broker/broker.ts";
import { GAP, type LogEntry } from "./log-entry.ts";

export class RingGaps {
  /** The last gap that was evicted, and its offset. */
  lastEvicted: Gap | null = null;
  lastEvictedAt = -1;
  /** The last gaps that were found late, with their offsets: to a reader that passes them by, nobody else tells of what they span. */
  #late: { readonly offset: number; readonly gap: Gap }[] = [];
  /** A gap may span beyond entries that follow on it: up to there, what is left of this epoch has holes by gaps that were evicted. */
  #holesUpTo: EventId = ZERO_ID;
  #kept = 0;

  pushed(entry: LogEntry, offset: number): void {
    this.#kept++;
    if (entry.gap!.reason === "rollback") this.#holesUpTo = ZERO_ID;
    else if (isLate(entry)) this.#late = [...this.#late.slice(1 - LATE_GAPS), { offset, gap: entry.gap! }];
  }

  /** `epoch`: offset behind the last rollback, whose gap stands just before it. */
  evicted(entry: LogEntry, offset: number, epoch: number): void {
    this.#kept--;
    this.lastEvicted = entry.gap;
    this.lastEvictedAt = offset;
    if (offset >= epoch - 1 && compareEventIds(spansTo(entry), this.#holesUpTo) > 0) this.#holesUpTo = spansTo(entry);
  }

  /** One gap for all that were found late and lie at or behind an offset; null when there are none. */
  lateBehind(offset: number): Gap | null {
    const gaps = this.#late.filter((late) => late.offset >= offset).map((late) => late.gap);
    const [first, last] = [gaps[0], gaps.at(-1)];
    if (first === undefined || last === undefined || first === last) return first ?? null;
    return { reason: "retention", from: first.from, to: last.to, missed: null };
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

const LATE_GAPS = 8;
