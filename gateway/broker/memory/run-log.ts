/** What the memory broker holds of one run: its entries, and the ids of those that it had to let go. */
import { compareEventIds, type EventId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { Gap, HistoryPage, Position, StoredEntry, Tail } from "../broker.ts";
import { Deque } from "./deque.ts";

/** What an entry costs beside its payload (object, Buffer, id, two slots), and what the id of a removed one costs; V8, 64 bit. */
export const ENTRY_BYTES = 200;
export const REMOVED_ID_BYTES = 56;

export type Page = Pick<HistoryPage, "gap" | "entries" | "next" | "atHead">;

export class RunLog {
  /** Ids of the latest entries, removed ones first; the last `#entries.length` of them are still here. */
  readonly #ids = new Deque<EventId>();
  readonly #entries = new Deque<StoredEntry>();
  #added = 0;
  #bytes = 0;
  #newest: EventId | null = null;
  #milliseconds: number;
  #sequence = 0;
  readonly #maxRemovedIds: number;
  /** Id of the run's end while nothing has come behind it. */
  endId: EventId | null = null;

  /** Ids begin above `floorMs`; of removed entries the last `maxRemovedIds` are known by id, so that a gap can say how many are missing. */
  constructor(floorMs: number, maxRemovedIds: number) {
    this.#milliseconds = floorMs;
    this.#sequence = Number.MAX_SAFE_INTEGER;
    this.#maxRemovedIds = maxRemovedIds;
  }

  /** Bytes that this run costs, estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Entries kept. */
  get length(): number {
    return this.#entries.length;
  }

  get newest(): EventId | null {
    return this.#newest;
  }

  /** Milliseconds of the newest id. */
  get newestMs(): number {
    return this.#milliseconds;
  }

  /** Stores a payload under the next id: `nowMs`, or the newest id's time where the clock has stood still or gone back. */
  append(payload: Buffer, nowMs: number): StoredEntry {
    if (nowMs > this.#milliseconds) {
      this.#milliseconds = nowMs;
      this.#sequence = 0;
    } else if (this.#sequence === Number.MAX_SAFE_INTEGER) {
      this.#milliseconds++;
      this.#sequence = 0;
    } else {
      this.#sequence++;
    }
    const id = `${this.#milliseconds}-${this.#sequence}`;
    const entry: StoredEntry = { id, payload };
    this.#ids.push(id);
    this.#entries.push(entry);
    this.#added++;
    this.#newest = id;
    this.endId = null;
    this.#bytes += ENTRY_BYTES + payload.length;
    return entry;
  }

  /** Removes the oldest entry. The caller knows that there is one. */
  removeOldest(): void {
    const entry = this.#entries.shift();
    this.#bytes += REMOVED_ID_BYTES - ENTRY_BYTES - (entry.payload?.length ?? 0);
    if (this.#ids.length - this.#entries.length > this.#maxRemovedIds) {
      this.#ids.shift();
      this.#bytes -= REMOVED_ID_BYTES;
    }
  }

  page(position: Position | null, limit: number): Page {
    const removed = this.#ids.length - this.#entries.length;
    const behind = position === null ? removed : this.#countUpTo(position.id);
    const start = Math.max(0, behind - removed);
    const entries = this.#entries.slice(start, start + limit);
    const gap = position === null ? null : this.#gap(position, behind, removed, entries[0]?.id ?? null);
    return { gap, entries, next: this.#next(position, gap, entries), atHead: start + entries.length >= this.#entries.length };
  }

  tail(count: number): Pick<Tail, "entries" | "complete" | "after" | "newest"> {
    const start = Math.max(0, this.#entries.length - count);
    const entries = this.#entries.slice(start, this.#entries.length);
    const complete = entries.length === this.#added;
    return { entries, complete, after: complete ? null : this.#idBefore(start), newest: this.#newest };
  }

  /** The place before the last `count` entries; null when there are no more than that. */
  findTail(count: number): Position | null {
    const start = this.#entries.length - count;
    return start <= 0 ? null : { id: this.#entries.at(start - 1).id, exact: true };
  }

  /** True when this log began at or before `id`. */
  reachesBackTo(id: EventId): boolean {
    return this.#countUpTo(id) > 0 || this.#added > this.#ids.length;
  }

  /** What was lost behind `position`; `behind` known ids lie at or before it, the first `removed` known ids are gone. */
  #gap(position: Position, behind: number, removed: number, to: EventId | null): Gap | null {
    const { id } = position;
    const found = id === this.#newest || (behind > 0 && this.#ids.at(behind - 1) === id);
    const retention: Gap = { reason: "retention", from: id === ZERO_ID ? null : id, to, missed: null };
    const missed = Math.max(0, removed - behind);
    if (found) return missed === 0 ? null : { ...retention, missed };
    // Before all ids that are known, and others were here once: how many cannot be told.
    if (behind === 0 && this.#added > this.#ids.length) return retention;
    if (!position.exact || id === ZERO_ID) return missed === 0 ? null : { ...retention, missed };
    if (this.#newest !== null && compareEventIds(id, this.#newest) > 0) return { ...retention, reason: "rollback", to: null };
    return behind <= removed ? retention : { ...retention, reason: "rollback" };
  }

  #next(position: Position | null, gap: Gap | null, entries: readonly StoredEntry[]): Position | null {
    const last = entries.at(-1);
    if (last !== undefined) return { id: last.id, exact: true };
    if (position !== null && gap === null && position.id !== ZERO_ID) return position;
    return this.#newest === null ? null : { id: this.#newest, exact: true };
  }

  #idBefore(entryIndex: number): EventId | null {
    const index = this.#ids.length - this.#entries.length + entryIndex - 1;
    if (index >= 0) return this.#ids.at(index);
    return this.#entries.length === 0 ? this.#newest : null;
  }

  /** How many known ids are at or before `id`. */
  #countUpTo(id: EventId): number {
    let low = 0;
    let high = this.#ids.length;
    if (high > 0 && this.#ids.at(high - 1) === id) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareEventIds(this.#ids.at(middle), id) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
