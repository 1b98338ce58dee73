/** A stretch of history, decoded once and shared by all who read there at about the same time. */
import { compareEventIds, type EventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Gap, HistoryPage, Position } from "../broker/broker.ts";
import { BatchCache, type Stretch } from "./batch.ts";
import { type LogEntry, logEntryOf } from "./log-entry.ts";
import { isBeyond } from "./run-end.ts";

/** How the run stood when a page was asked for. The answer is of a later moment, but of how much later nobody knows. */
export interface Asked {
  /** Where the ring ended, and where its epoch began. */
  readonly ringNext: number;
  readonly ringEpoch: number;
  /** The end that was known. */
  readonly endId: EventId | null;
}

export class Page implements Stretch {
  readonly position: Position | null;
  readonly gap: Gap | null;
  readonly entries: readonly LogEntry[];
  /** Where to read on. */
  readonly end: Position | null;
  readonly atHead: boolean;
  readonly newest: EventId | null;
  readonly endedId: EventId | null;
  readonly #isMarkUnknown: boolean;
  /** Behind this id the entries are without holes. */
  readonly #deletedUpTo: EventId;
  readonly next: number;
  readonly ringNext: number;
  readonly ringEpoch: number;
  /** The end that was known when this page was asked for. */
  readonly knownEnd: EventId | null;
  readonly batches = new BatchCache();

  constructor(position: Position | null, history: HistoryPage, asked: Asked) {
    this.position = position;
    this.gap = history.gap;
    this.entries = history.entries.map(logEntryOf);
    this.end = history.next;
    this.atHead = history.atHead;
    this.newest = history.newest;
    this.endedId = history.endedId;
    this.#isMarkUnknown = history.isMarkUnknown === true;
    this.#deletedUpTo = history.deletedUpTo ?? ZERO_ID;
    this.next = this.entries.length;
    this.ringNext = asked.ringNext;
    this.ringEpoch = asked.ringEpoch;
    this.knownEnd = asked.endId;
  }

  at(index: number): LogEntry {
    return this.entries[index]!;
  }

  /** The index from which a reader at `position` goes on; null when it has to ask for itself. */
  indexFor(position: Position | null): number | null {
    if (position === null || this.position === null) {
      if (position === this.position) return 0;
      if (position === null) return null;
    }
    // Each reader is to be told of what was deleted behind its own place.
    const isSound = compareEventIds(position.id, this.#deletedUpTo) >= 0;
    if (samePlace(this.position, position) && (isSound || this.position === position)) return 0;
    // Without a gap, what was read behind an entry also answers who asks for that place as a mere time.
    if (isSound && this.gap === null && this.position?.id === position.id && this.position.exact) return 0;
    return isSound ? this.#indexBehind(position.id) : null;
  }

  /** Null when `id` is no entry of this page, or its last: of what lies behind that it says nothing. */
  #indexBehind(id: EventId): number | null {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareEventIds(this.entries[middle]!.id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low + 1 < this.entries.length && this.entries[low]!.id === id ? low + 1 : null;
  }

  /** True when the run had ended there by the time that the broker answered, or, without its mark, when nothing speaks against it. */
  tellsOfEnd(endId: EventId): boolean {
    if (this.newest !== null && isBeyond(this.newest, endId)) return false;
    return this.#isMarkUnknown || this.endedId === endId || (this.newest !== null && compareEventIds(this.newest, endId) >= 0);
  }
}

/** The pages of one run that were read in the last moments: a wave of readers at one place costs one read. */
export class PageCache {
  #pages: { page: Page; readAt: number }[] = [];

  add(page: Page, now: number): void {
    // That nothing is there is a fact of one moment; who comes later asks again. What was trimmed stays trimmed.
    if (page.next === 0) return;
    this.expire(now);
    if (this.#pages.length === MAX_PAGES) this.#pages.shift();
    this.#pages.push({ page, readAt: now });
  }

  /** A page and the index in it from which a reader at `position` goes on. */
  find(position: Position | null, now: number): { page: Page; index: number } | null {
    for (const { page, readAt } of this.#pages) {
      const index = now - readAt > KEPT_MS ? null : page.indexFor(position);
      if (index !== null) return { page, index };
    }
    return null;
  }

  /** Forgets pages that are too old; true while some are left. */
  expire(now: number): boolean {
    this.#pages = this.#pages.filter(({ readAt }) => now - readAt <= KEPT_MS);
    return this.#pages.length > 0;
  }

  clear(): void {
    this.#pages = [];
  }
}

export function samePlace(a: Position | null, b: Position | null): boolean {
  if (a === null || b === null) return a === b;
  return a.id === b.id && a.exact === b.exact;
}

const MAX_PAGES = 8;
const KEPT_MS = 2_000;
