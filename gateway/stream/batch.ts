/** What one write carries: the frames that one filter lets through, from one place on, encoded once for all who stand there. */
import type { EventId } from "../../protocol/event-id.ts";
import type { Filter } from "./filter.ts";
import { END, EVENT, GAP, type LogEntry, UNKNOWN } from "./log-entry.ts";

/** Most bytes of one write: uWebSockets.js corks 16 KiB, chunk heads included. A larger frame makes a batch of its own. */
export const BATCH_BYTES = 16_000;

/** A run of entries that can be read by offset: the ring, or a page of history. */
export interface Stretch {
  /** Offset behind the last entry. */
  readonly next: number;
  at(offset: number): LogEntry;
}

export class Batch {
  readonly filter: string;
  readonly from: number;
  /** Offset behind the last entry that this batch covers. */
  readonly to: number;
  /** Null when the filter let nothing through. */
  readonly bytes: Uint8Array | null;
  readonly events: number;
  /** Id of the last entry covered; "" when there was none. */
  readonly lastId: EventId;
  /** True when entries behind the last frame were held back by the filter: the client has not heard of `lastId`. */
  readonly owesCursor: boolean;
  /** Set when this is a gap and nothing else. */
  readonly mark: LogEntry | null;

  constructor(
    filter: string,
    from: number,
    to: number,
    bytes: Uint8Array | null,
    events: number,
    lastId: EventId,
    owesCursor: boolean,
    mark: LogEntry | null,
  ) {
    this.filter = filter;
    this.from = from;
    this.to = to;
    this.bytes = bytes;
    this.events = events;
    this.lastId = lastId;
    this.owesCursor = owesCursor;
    this.mark = mark;
  }
}

/** Gathers what may go into one write. `from` must be below `stretch.next`. */
export function buildBatch(stretch: Stretch, from: number, filter: Filter): Batch {
  const first = stretch.at(from);
  if (first.type === GAP) return new Batch(filter.key, from, from + 1, null, 0, first.id, false, first);
  const frames: Buffer[] = [];
  let bytes = 0;
  let events = 0;
  let lastId = "";
  let owesCursor = false;
  let to = from;
  for (; to < stretch.next; to++) {
    const entry = stretch.at(to);
    if (entry.type === GAP) break;
    const passes = entry.type === EVENT ? filter.key === "" || filter.matches(entry) : entry.type === UNKNOWN;
    if (passes) {
      if (bytes > 0 && bytes + entry.frame.length > BATCH_BYTES) break;
      frames.push(entry.frame);
      bytes += entry.frame.length;
      if (entry.type === EVENT) events++;
      owesCursor = false;
    } else if (entry.type !== END) {
      owesCursor = true;
    }
    lastId = entry.id;
  }
  return new Batch(filter.key, from, to, join(frames, bytes), events, lastId, owesCursor, null);
}

function join(frames: Buffer[], bytes: number): Uint8Array | null {
  if (frames.length === 0) return null;
  if (frames.length === 1) return frames[0]!;
  return Buffer.concat(frames, bytes);
}

/** The last few batches of one stretch. Whoever stands at the same place with the same filter gets the same bytes. */
export class BatchCache {
  #batches: Batch[] | null = null;

  get(stretch: Stretch, from: number, filter: Filter): Batch {
    this.#batches ??= [];
    const batches = this.#batches;
    for (const batch of batches) if (batch.from === from && batch.filter === filter.key) return batch;
    const batch = buildBatch(stretch, from, filter);
    if (batches.length === CACHED) batches.shift();
    batches.push(batch);
    return batch;
  }

  /** To be called when the stretch has grown, or is not read for a while. */
  clear(): void {
    this.#batches = null;
  }
}

const CACHED = 16;
