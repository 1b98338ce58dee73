/**
 * Where events are kept and come from. The heart (`gateway/stream`) knows brokers by this interface alone; a module that exports
 * `createBroker(context: BrokerContext): Broker` can stand in by its path (`--broker ./my-broker.ts`).
 */
import type { EventId } from "../../protocol/event-id.ts";
import type { GapReason } from "../../protocol/wire.ts";

/** One entry as the broker keeps it. */
export interface StoredEntry {
  readonly id: EventId;
  /** Compact JSON, `{"type":"event","event":{…}}` or `{"type":"end"}`; null where the entry has no such field. Must not be changed. */
  readonly payload: Buffer | null;
}

/** Events missing between `from` and `to`, both exclusive. */
export interface Gap {
  readonly reason: GapReason;
  /** The last id before the gap; null when there was none. */
  readonly from: EventId | null;
  /** The first id after the gap; null when it is not known yet. */
  readonly to: EventId | null;
  /** How many events are missing; null when that cannot be known. */
  readonly missed: number | null;
}

/** A place in a stream: just behind `id`. */
export interface Position {
  readonly id: EventId;
  /** True for a place that a reader held (Last-Event-ID): the entry must still exist, or something was lost. A `since` need not exist. */
  readonly exact: boolean;
}

/** A stretch of history, read at one moment. */
export interface HistoryPage {
  /** What is missing before the first entry, or between the position and now when there are no entries. */
  readonly gap: Gap | null;
  /** Strictly behind the position, rising, without holes. */
  readonly entries: readonly StoredEntry[];
  /**
   * Where to read on, to be passed back as it is: it may know more than it shows. Null is still "before everything" (the stream is empty
   * and has never held anything that is known).
   */
  readonly next: Position | null;
  /** True when nothing lay behind `next` at the moment of reading. */
  readonly atHead: boolean;
  /** Newest id that the stream ever gave out, as far as is known at that moment. */
  readonly newest: EventId | null;
  /** Id of the run's end as its mark has it (`markEnded`), null without a mark. */
  readonly endedId: EventId | null;
  /** True when the mark could not be read: that `endedId` is null says nothing then. Absent: it was read. */
  readonly isMarkUnknown?: boolean;
  /** Up to this id entries were deleted from the middle, before others that are kept; absent where that does not happen. */
  readonly deletedUpTo?: EventId;
}

/** The youngest stretch of a stream, with which a watch begins. */
export interface Tail {
  readonly entries: readonly StoredEntry[];
  /** True when `entries` holds everything that the stream has ever held. */
  readonly complete: boolean;
  /** The last id before `entries`, when it is known and `complete` is false. */
  readonly after: EventId | null;
  readonly newest: EventId | null;
  readonly endedId: EventId | null;
  /** As in `HistoryPage`. What there is of a mark is told by `onMark` later. */
  readonly isMarkUnknown?: boolean;
  /** As in `HistoryPage`. */
  readonly deletedUpTo?: EventId;
}

/** Hears what happens in one run. Calls come one at a time, never inside `watch` itself, and in the order of the stream. */
export interface RunObserver {
  /** Once, before all others but `onOutage`. */
  onTail(tail: Tail): void;
  /** New entries, each behind the one before; after a gap, from the gap's end. */
  onEntries(entries: readonly StoredEntry[]): void;
  /**
   * Something was lost here: `retention` or `rollback`. After `rollback` ids may start lower than before. `newest` is the newest id that
   * the stream has given out, kept or not; null when there is no stream. A reader that resumes there hears of this loss no more, and
   * nothing of it lies behind. The entries behind the gap come by onEntries in the same turn; some may lie before `gap.to`.
   */
  onGap(gap: Gap, newest: EventId | null): void;
  /**
   * The mark of the run's end, if there is one: where the tail had to go without, or an end may be among what a gap tells of. It may be
   * old, the run may have gone on since.
   */
  onMark(endedId: EventId): void;
  /** Reading has failed for the socket timeout. Once an outage. */
  onOutage(): void;
  /** Reading goes on, and what was lost meanwhile has been told by `onGap`. */
  onRecovered(): void;
  /** True when this id has been handed over by onTail or onEntries, lately and since the last rollback: finds the common past after one. */
  hasSeen(id: EventId): boolean;
}

export interface Watch {
  /** No call of the observer comes after it. */
  close(): void;
}

/** Makes a publish safe to repeat: the same key with the same body is stored once, within 10 minutes. */
export interface Idempotency {
  /** Who publishes; keys of one caller never meet those of another. */
  readonly scope: string;
  /** The `Idempotency-Key` header, at most 255 bytes. */
  readonly key: string;
  /** SHA-256 of the body, hex. */
  readonly bodyHash: string;
}

export interface PublishRequest {
  readonly runId: string;
  /** Broker frames, in order. */
  readonly entries: readonly Buffer[];
  readonly idempotency: Idempotency | null;
}

export interface PublishResult {
  readonly count: number;
  readonly lastId: EventId | null;
}

export type BrokerHealth = {
  readonly readable: boolean;
  readonly writable: boolean;
  /** One line for a person, without secrets. */
  readonly detail: string;
};

export interface Broker {
  /** Connects and probes. Throws BrokerStartError with one line that says what to do. */
  start(): Promise<void>;
  /** Stores a batch in order. Throws BrokerUnavailableError (nothing or a part is known to be stored) or IdempotencyConflictError. */
  publish(request: PublishRequest): Promise<PublishResult>;
  /** Stores the end of a run and marks it. Idempotent: the id of the first end while nothing was published since. */
  end(runId: string): Promise<{ readonly lastId: EventId }>;
  /** Sets the mark of an end that was seen in the stream, so that it outlives the stream. Never throws. */
  markEnded(runId: string, endedId: EventId): void;
  /** Removes the mark: the run went on. Never throws. */
  clearEnded(runId: string): void;
  /** At most `limit` entries behind `position` (null: from the oldest kept). Throws BrokerUnavailableError. */
  readPage(runId: string, position: Position | null, limit: number): Promise<HistoryPage>;
  /** The last `count` entries' place, for `?tail=`: the position before them; null when the stream holds no more than that. */
  findTail(runId: string, count: number): Promise<Position | null>;
  /** Starts to read a run. Never throws: what fails is tried again, and told by `onOutage`. */
  watch(runId: string, observer: RunObserver): Watch;
  health(): BrokerHealth;
  close(): Promise<void>;
}

/** What a broker gets from the gateway that makes it. */
export interface BrokerContext {
  readonly deploymentId: string | null;
  /** Entries with which a watch begins. */
  readonly tailEntries: number;
  readonly log: BrokerLog;
  readonly metrics: BrokerMetrics;
}

export interface BrokerLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What a broker counts; see `gateway/metrics/definitions.ts` for the meaning of each. */
export interface BrokerMetrics {
  redisConnected(role: "command" | "read" | "wake", connected: number): void;
  redisReconnect(role: "command" | "read" | "wake"): void;
  redisError(type: "connection" | "timeout" | "reply" | "moved"): void;
  redisReads(count: number): void;
  /** `tracking`, `blocking` or `polling`: how runs are read at present. */
  readMode(mode: "tracking" | "blocking" | "polling"): void;
  duplicateDropped(count: number): void;
}
