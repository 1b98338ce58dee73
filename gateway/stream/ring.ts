/**
 * The youngest entries of a run, encoded once and shared by all its subscribers. Places in it are offsets that only rise, so a
 * subscriber is an integer, and "has it fallen off?" one comparison (docs/adr/0003-rings-not-queues.md).
 */
import { compareEventIds, type EventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Tail } from "../broker/broker.ts";
import { BatchCache, type Stretch } from "./batch.ts";
import { ENTRY_OVERHEAD, GAP, type LogEntry } from "./log-entry.ts";
import { RingGaps } from "./ring-gaps.ts";

/** `Ring.after` of a ring that holds everything that its stream ever held. */
export const BEGINNING = "";

export class Ring implements Stretch {
  /** Offset of the oldest entry; equal to `next` in an empty ring. */
  first = 0;
  next = 0;
  bytes = 0;
  /**
   * The id just before the oldest entry of this epoch: whoever stands there misses nothing by reading on here.
   * `BEGINNING`: nothing came before. Null: not known.
   */
  after: EventId | null = null;
  /** Id of the newest entry, or what stands for it in a stream that holds none. */
  newest: EventId | null = null;
  readonly batches = new BatchCache();
  /** Offset from which ids rise: behind the last rollback. */
  epoch = 0;
  /** Null as long as there has not been any gap. */
  gaps: RingGaps | null = null;
  #slots: (LogEntry | undefined)[] = [];
  readonly #maxEntries: number;
  readonly #maxBytes: number;

  /** At most `maxEntries` entries and `maxBytes` bytes of frames; the last entry is always kept. */
  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  /** What is known before the first entry. */
  begin({ complete, entries, after, newest, deletedUpTo }: Tail): void {
    this.newest = newest;
    const first = entries[0]?.id ?? null;
    if (complete) this.after = BEGINNING;
    // With nothing kept, what comes next follows on the newest id that ever was.
    else if (first === null) this.after = newest;
    else this.after = deletedUpTo !== undefined && compareEventIds(deletedUpTo, after ?? first) > 0 ? deletedUpTo : after;
  }

  at(offset: number): LogEntry {
    return this.#slots[offset & (this.#slots.length - 1)]!;
  }

  push(entry: LogEntry): void {
    if (this.next - this.first >= this.#maxEntries) this.#evict();
    if (this.next - this.first === this.#slots.length) this.#grow();
    this.#slots[this.next & (this.#slots.length - 1)] = entry;
    this.next++;
    this.bytes += sizeOf(entry);
    if (entry.type === GAP) this.#notePushed(entry);
    else {
      // The first behind a rollback shows where its epoch begins, if that is not yet known.
      if (this.next - 1 === this.epoch && this.after !== null && compareEventIds(entry.id, this.after) <= 0) this.after = null;
      this.newest = entry.id;
    }
    while (this.bytes > this.#maxBytes && this.next - this.first > 1) this.#evict();
    this.batches.clear();
  }

  /** Drops the oldest entries until at most `bytes` are held. */
  shrink(bytes: number): void {
    while (this.bytes > bytes && this.first < this.next) this.#evict();
    this.batches.clear();
    if (this.first === this.next) this.#slots = [];
  }

  /**
   * Where a reader that holds `id` goes on without missing anything, if this ring can tell: an entry of the current epoch, or the id just
   * before it. With `exact` false `id` need not be an entry, only lie within what the ring covers. Null when only the broker can tell.
   */
  placeAfter(id: EventId, exact: boolean): number | null {
    const place = this.#placeAfter(id, exact);
    return place !== null && this.gaps?.spanBeyond(id, place, this) === true ? null : place;
  }

  #placeAfter(id: EventId, exact: boolean): number | null {
    const start = Math.max(this.first, this.epoch);
    const offset = this.#lowerBound(id, start);
    if (offset < this.next && this.at(offset).type !== GAP && this.at(offset).id === id) return offset + 1;
    if (id === this.after) return start;
    if (id === ZERO_ID && this.after === BEGINNING) return start;
    const before = offset > start ? this.at(offset - 1) : null;
    if (before?.type === GAP) {
      // Who holds what a gap left as the newest has been told of it. Beside a gap all else is for the broker to say.
      return before.gap!.to === null && before.newest === id ? offset : null;
    }
    if (exact || this.newest === null || compareEventIds(id, this.newest) > 0) return null;
    if (before !== null || this.after === BEGINNING) return offset;
    return this.after !== null && compareEventIds(id, this.after) > 0 ? offset : null;
  }

  /** Id of what lies just before an offset of this epoch; null when there is nothing, or a gap. */
  idBefore(offset: number): EventId | null {
    if (offset === this.next) return this.newest;
    if (offset === this.start) return this.after === BEGINNING ? null : this.after;
    const before = this.at(offset - 1);
    return before.type === GAP ? null : before.id;
  }

  /** Where a reader without a position begins, if the ring holds all that there is: no gap lies before its first entry. */
  oldest(): number | null {
    if (this.after !== BEGINNING) return null;
    let place = this.start;
    while (place < this.next && this.at(place).type === GAP) place++;
    return place;
  }

  /** Offset of the first entry of this epoch. */
  get start(): number {
    return Math.max(this.first, this.epoch);
  }

  /** True for the id of an entry of this epoch, or the one just before them. */
  has(id: EventId): boolean {
    if (id === this.after) return true;
    const offset = this.#lowerBound(id, this.start);
    return offset < this.next && this.at(offset).id === id;
  }

  /** Offset at or behind `offset` of what is new to a reader that knows everything up to `id`. */
  skipThrough(offset: number, id: EventId): number {
    let place = offset;
    while (place < this.next && liesBefore(this.at(place), id)) place++;
    return place;
  }

  /** True when the next entry from `offset` on, here or still to come, is one behind `id`, and no gap. */
  goesOnBehind(id: EventId, offset: number): boolean {
    if (offset === this.next) return true;
    const entry = this.at(offset);
    return entry.type !== GAP && compareEventIds(entry.id, id) > 0;
  }

  /** True when `id` is where the ring stands just before `offset`. */
  reaches(offset: number, id: EventId): boolean {
    if (offset === this.first) return id === this.after;
    const before = this.at(offset - 1);
    return before.type === GAP ? (before.gap!.to ?? before.newest) === id : before.id === id;
  }

  #lowerBound(id: EventId, start: number): number {
    let low = start;
    let high = this.next;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareEventIds(this.at(middle).id, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #notePushed(entry: LogEntry): void {
    const { gap, newest } = entry;
    this.gaps ??= new RingGaps();
    this.gaps.pushed(entry, this.next - 1);
    if (gap!.reason === "rollback") {
      this.epoch = this.next;
      // Unless something follows at once, nothing lies between what there is and what will come.
      this.after = gap!.to === null ? newest : null;
      this.newest = newest;
    } else if (this.newest === null || (newest !== null && compareEventIds(newest, this.newest) > 0)) this.newest = newest;
  }

  #evict(): void {
    const mask = this.#slots.length - 1;
    const offset = this.first++;
    const entry = this.#slots[offset & mask]!;
    this.#slots[offset & mask] = undefined;
    this.bytes -= sizeOf(entry);
    if (entry.type === GAP) this.gaps!.evicted(entry, offset, this.epoch);
    if (offset >= this.epoch) this.after = entry.type === GAP ? null : entry.id;
  }

  #grow(): void {
    const slots: (LogEntry | undefined)[] = new Array(Math.max(4, this.#slots.length * 2));
    for (let offset = this.first; offset < this.next; offset++) slots[offset & (slots.length - 1)] = this.at(offset);
    this.#slots = slots;
  }
}

function liesBefore(entry: LogEntry, id: EventId): boolean {
  if (entry.type !== GAP) return compareEventIds(entry.id, id) <= 0;
  const upTo = entry.gap!.to ?? entry.newest;
  return entry.gap!.reason === "retention" && upTo !== null && compareEventIds(upTo, id) <= 0;
}

function sizeOf(entry: LogEntry): number {
  return entry.frame.length + ENTRY_OVERHEAD;
}
