/** A stretch of history, decoded once and shared by all who read there at about the same time. */
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import type { Gap, HistoryPage, Position } from "../broker/broker.ts";
import { BatchCache, type Stretch } from "./batch.ts";
import { ENTRY_OVERHEAD, type LogEntry, logEntryOf } from "./log-entry.ts";

export class Page implements Stretch {
  readonly position: Position | null;
  readonly gap: Gap | null;
  readonly entries: readonly LogEntry[];
  /** Where to read on. */
  readonly end: Position | null;
  readonly atHead: boolean;
  readonly newest: EventId | null;
  readonly next: number;
  readonly bytes: number;
  /** Where the ring ended when this page was read, and where its epoch began. */
  readonly ringNext: number;
  readonly ringEpoch: number;
  readonly batches = new BatchCache();

  constructor(position: Position | null, history: HistoryPage, ring: { readonly next: number; readonly epoch: number }) {
    this.ringNext = ring.next;
    this.ringEpoch = ring.epoch;
    this.position = position;
    this.gap = history.gap;
    this.entries = history.entries.map(logEntryOf);
    this.end = history.next;
    this.atHead = history.atHead;
    this.newest = history.newest;
    this.next = this.entries.length;
    this.bytes = this.entries.reduce((sum, entry) => sum + entry.frame.length + ENTRY_OVERHEAD, 0);
  }

  at(index: number): LogEntry {
    return this.entries[index]!;
  }

  /** Index of the entry behind `id`, if `id` is an entry of this page; else null. */
  indexBehind(id: EventId): number | null {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareEventIds(this.entries[middle]!.id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low < this.entries.length && this.entries[low]!.id === id ? low + 1 : null;
  }
}

/** The pages of one run that were read in the last moments: a wave of readers at one place costs one read. */
export class PageCache {
  #pages: { page: Page; readAt: number }[] = [];

  add(page: Page, now: number): void {
    // A rollback and an empty stream are facts of one moment; who comes later asks again. What was trimmed stays trimmed.
    if (page.gap?.reason === "rollback" || page.entries.length === 0) return;
    this.expire(now);
    if (this.#pages.length === MAX_PAGES) this.#pages.shift();
    this.#pages.push({ page, readAt: now });
  }

  /** A page and the index in it from which a reader at `position` goes on. */
  find(position: Position | null, now: number): { page: Page; index: number } | null {
    for (const { page, readAt } of this.#pages) {
      if (now - readAt > KEPT_MS) continue;
      if (position === null) {
        if (page.position === null) return { page, index: 0 };
      } else {
        if (page.position !== null && answers(page, page.position, position)) return { page, index: 0 };
        const index = page.indexBehind(position.id);
        // At its very end a page says nothing about what lies behind.
        if (index !== null && index < page.next) return { page, index };
      }
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

/** A page without a gap that was read behind an entry also answers who asks for that place as a mere time. */
function answers(page: Page, read: Position, asked: Position): boolean {
  return read.id === asked.id && (read.exact === asked.exact || (read.exact && page.gap === null));
}

const MAX_PAGES = 8;
const KEPT_MS = 2_000;
