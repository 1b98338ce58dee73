/**
 * The embedded broker: everything in the memory of this process, bounded, gone with it. Ids, time to live, trimming, marks and
 * idempotency are as on Redis, so that nothing above can tell the two apart.
 */
import { compareEventIds, type EventId, millisecondsOf, ZERO_ID } from "../../protocol/event-id.ts";
import { STRAGGLER_MS } from "../../protocol/wire.ts";
import { BrokerUnavailableError, IdempotencyConflictError } from "../errors.ts";
import type {
  Broker,
  BrokerContext,
  BrokerHealth,
  Gap,
  HistoryPage,
  Position,
  PublishRequest,
  PublishResult,
  RunObserver,
  Tail,
  Watch,
} from "./broker.ts";
import { ExpiringMap } from "./memory/expiring-map.ts";
import { RunLog } from "./memory/run-log.ts";
import { RunStore } from "./memory/run-store.ts";
import { Watches } from "./memory/watches.ts";

export interface MemoryBrokerOptions {
  /** Bound of everything together, in bytes, as estimated. The run published to least lately is cut first. */
  readonly totalBytes: number;
  /** Entries kept a run; at least 1. */
  readonly maxStreamLength: number;
  /** A run is dropped when nothing was published to it for so long; at least 1. */
  readonly streamTtlSeconds: number;
  /** For tests. Wall clock in milliseconds, which ids are made of. */
  readonly now?: () => number;
  /** For tests. Monotonic clock in milliseconds, which lives are measured with. */
  readonly monotonic?: () => number;
}

export interface MemoryBroker extends Broker {
  /** Keeps the youngest `keep` entries of a run, as XTRIM does. For tests. */
  trim(runId: string, keep: number): void;
  /** Drops a run with all that is known of it but its ended mark, as DEL does. For tests. */
  delete(runId: string): void;
}

export function createMemoryBroker(options: MemoryBrokerOptions, context: BrokerContext): MemoryBroker {
  return new InMemoryBroker(options, context);
}

const END_PAYLOAD = Buffer.from('{"type":"end"}');
const IDEMPOTENCY_MS = 10 * 60_000;
const ENDED_MARK_MS = 24 * 3_600_000;
const SWEEP_MS = 10_000;
/** What a remembered answer or mark costs, and the part of `totalBytes` that each of the two kinds may take. */
const MEMO_BYTES = 320;
const MEMO_SHARE = 1 / 16;
/** Stands for a run of which nothing is known. */
const NOTHING = new RunLog(-1, 0);

class InMemoryBroker implements MemoryBroker {
  readonly #options: MemoryBrokerOptions;
  readonly #tailEntries: number;
  readonly #runs: RunStore;
  readonly #watches: Watches;
  readonly #answers: ExpiringMap<{ readonly bodyHash: string; readonly result: PublishResult }>;
  readonly #ended: ExpiringMap<EventId>;
  #sweeper: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: MemoryBrokerOptions, context: BrokerContext) {
    const { totalBytes, maxStreamLength } = options;
    const now = options.now ?? Date.now;
    const monotonic = options.monotonic ?? (() => performance.now());
    const maxMemos = Math.max(1, Math.floor((totalBytes * MEMO_SHARE) / MEMO_BYTES));
    this.#options = options;
    this.#tailEntries = context.tailEntries;
    this.#runs = new RunStore({ totalBytes, maxStreamLength, ttlMs: options.streamTtlSeconds * 1000, now, monotonic });
    this.#watches = new Watches((runId) => this.#tail(runId), context.log);
    this.#answers = new ExpiringMap(IDEMPOTENCY_MS, maxMemos, monotonic);
    this.#ended = new ExpiringMap(ENDED_MARK_MS, maxMemos, monotonic);
  }

  async start(): Promise<void> {
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  async publish(request: PublishRequest): Promise<PublishResult> {
    this.#refuseWhenClosed();
    const { runId, entries, idempotency } = request;
    if (idempotency === null) return this.#store(runId, entries);
    // Nothing here waits, so a repeat never meets a first that is still in flight.
    const key = JSON.stringify([runId, idempotency.scope, idempotency.key]);
    const known = this.#answers.get(key);
    if (known === undefined) {
      const result = this.#store(runId, entries);
      this.#answers.set(key, { bodyHash: idempotency.bodyHash, result });
      return result;
    }
    if (known.bodyHash !== idempotency.bodyHash) throw new IdempotencyConflictError();
    return known.result;
  }

  async end(runId: string): Promise<{ readonly lastId: EventId }> {
    this.#refuseWhenClosed();
    const log = this.#runs.find(runId);
    const known = log === undefined ? this.#ended.get(runId) : log.endId;
    const lastId = known ?? this.#append(runId, [END_PAYLOAD]);
    const stored = this.#runs.find(runId);
    if (stored !== undefined) stored.endId = lastId;
    this.#ended.set(runId, lastId);
    return { lastId };
  }

  markEnded(runId: string, endedId: EventId): void {
    if (this.#ended.get(runId) !== endedId) this.#ended.set(runId, endedId);
  }

  clearEnded(runId: string): void {
    this.#ended.delete(runId);
  }

  async readPage(runId: string, position: Position | null, limit: number): Promise<HistoryPage> {
    this.#refuseWhenClosed();
    const log = this.#runs.find(runId) ?? NOTHING;
    const endedId = this.#ended.get(runId) ?? null;
    const page = log.page(position, limit);
    const gap = page.gap ?? gapBeforeMark(position, endedId, log, page.entries[0]?.id ?? null);
    return { ...page, gap, newest: log.newest, endedId };
  }

  async findTail(runId: string, count: number): Promise<Position | null> {
    this.#refuseWhenClosed();
    return this.#runs.find(runId)?.findTail(count) ?? null;
  }

  watch(runId: string, observer: RunObserver): Watch {
    return this.#watches.add(runId, observer);
  }

  health(): BrokerHealth {
    const detail = `in memory: ${this.#runs.size} runs, ${this.#runs.bytes} of ${this.#options.totalBytes} bytes`;
    return { readable: !this.#closed, writable: !this.#closed, detail };
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#watches.clear();
    this.#runs.clear();
  }

  trim(runId: string, keep: number): void {
    this.#runs.trim(runId, keep);
  }

  delete(runId: string): void {
    this.#runs.delete(runId);
  }

  #store(runId: string, entries: readonly Buffer[]): PublishResult {
    return { count: entries.length, lastId: entries.length === 0 ? null : this.#append(runId, entries) };
  }

  /** Stores at least one payload and returns the last id. */
  #append(runId: string, payloads: readonly Buffer[]): EventId {
    const entries = this.#runs.append(runId, payloads, (this.#answers.size + this.#ended.size) * MEMO_BYTES);
    const lastId = (entries.at(-1) as { id: EventId }).id;
    // An entry too late to be a straggler takes the mark away, whether somebody watches the run or not.
    const endedId = this.#ended.get(runId);
    if (endedId !== undefined && millisecondsOf(lastId) > millisecondsOf(endedId) + STRAGGLER_MS) this.#ended.delete(runId);
    this.#watches.push(runId, entries);
    return lastId;
  }

  #tail(runId: string): Tail {
    const endedId = this.#ended.get(runId) ?? null;
    const log = this.#runs.find(runId);
    // A mark without a stream says that there was something, though nothing of it is left.
    if (log === undefined) return { entries: [], complete: endedId === null, after: null, newest: null, endedId };
    return { ...log.tail(this.#tailEntries), endedId };
  }

  #sweep(): void {
    this.#runs.expire();
    this.#answers.sweep();
    this.#ended.sweep();
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw new BrokerUnavailableError("The broker is closed; the gateway is shutting down.");
  }
}

/** A mark tells of an end entry, and so of a stream, that is gone: a `since` before it has missed something. */
function gapBeforeMark(position: Position | null, endedId: EventId | null, log: RunLog, to: EventId | null): Gap | null {
  if (position === null || endedId === null || log.reachesBackTo(endedId)) return null;
  if ((position.exact && position.id !== ZERO_ID) || compareEventIds(position.id, endedId) >= 0) return null;
  return { reason: "retention", from: position.id, to, missed: null };
}
