/** What a run needs from around it. Everything that takes time, or knows the time, is here; the run itself is synchronous. */
import type { EventId } from "../../protocol/event-id.ts";
import type { GapReason } from "../../protocol/wire.ts";
import type { Position } from "../broker/broker.ts";
import type { Run } from "./run.ts";
import type { CloseReason } from "./sink.ts";
import type { Subscriber } from "./subscriber.ts";

export interface RunHost {
  /** Asks for history; `Run.pageRead` or `Run.pageFailed` answers with the same position. */
  readPage(run: Run, position: Position | null, limit: number): void;
  /** Asks for the place before the last `count` entries; `Run.tailFound` answers. */
  findTail(subscriber: Subscriber, count: number): void;
  /** Asks for `Run.flush` at that time, or as soon as the stack has unwound when it is not in the future. */
  flushAt(run: Run, at: number): void;
  /** Asks for `Run.serve(subscriber)` as soon as the stack has unwound. */
  serveSoon(subscriber: Subscriber): void;
  /** Asks for `Run.retryPages` after a while: reading history has failed. */
  retryPagesLater(run: Run): void;
  markEnded(run: Run, endedId: EventId): void;
  clearEnded(run: Run): void;
  /** A stream is over, whoever ended it. Once each. */
  closed(subscriber: Subscriber, reason: CloseReason): void;
  /** The ring has grown by this many bytes, or shrunk. */
  ringChanged(run: Run, bytes: number): void;
  /** Milliseconds of the wall clock, as ids count them. */
  wallNow(): number;
  /** Milliseconds that a client is told to wait before it comes back; by chance, each its own. */
  retryMs(): number;
  readonly counters: StreamCounters;
}

/** What the heart counts. */
export interface StreamCounters {
  delivered(events: number, bytes: number): void;
  replayed(events: number): void;
  heartbeat(): void;
  gap(reason: GapReason, missed: number | null): void;
  resumed(result: "ring" | "history" | "gap"): void;
  backpressure(): void;
  unknownEntry(): void;
  /** From the time in an entry's id to its first write, in milliseconds; once a flush. */
  lag(milliseconds: number): void;
}

export interface RunSettings {
  readonly ringEvents: number;
  readonly ringBytes: number;
  /** Longer while there is too much to do: read again each time. */
  readonly coalesceMs: number;
  readonly slowConsumer: "replay" | "gap" | "disconnect";
  /** Entries of a page of history. */
  readonly pageEntries: number;
  /** A heartbeat is due when no byte has left for so long, on a stream that carried an event within the last minute; half on others. */
  readonly heartbeatMs: number;
  /** A socket that takes no byte for so long is closed. */
  readonly stallMs: number;
}

export const DEFAULT_PAGE_ENTRIES = 256;
/** Cursor frames for filtered events are no more frequent than this on one stream. */
export const CURSOR_INTERVAL_MS = 1_000;
