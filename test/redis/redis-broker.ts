/** Brokers on real servers for these tests, and an observer that writes down what it hears. */

import type { Broker, BrokerContext, Gap, RunObserver, StoredEntry, Tail } from "../../gateway/broker/broker.ts";
import type { RedisOptions } from "../../gateway/broker/redis/target.ts";
import { createRedisBroker, type ReadTimings } from "../../gateway/broker/redis.ts";
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import { waitFor } from "../support/wait-for.ts";

export const DEPLOYMENT = "3f2b0c1e-0000-4000-8000-000000000001";
export const TAIL_ENTRIES = 10;

export interface TestLog {
  readonly lines: { level: string; fields: object; message: string }[];
}

export interface TestBroker {
  readonly broker: Broker;
  readonly log: TestLog;
  readonly counts: Counts;
  close(): Promise<void>;
}

/** What the broker counted. */
export interface Counts {
  connected: { command: number; read: number; wake: number };
  reconnects: number;
  errors: { connection: number; timeout: number; reply: number; moved: number };
  reads: number;
  dropped: number;
  mode: string;
}

export function redisOptions(options: Partial<RedisOptions>): RedisOptions {
  return {
    url: null,
    nodes: [],
    sentinel: null,
    username: null,
    password: null,
    tls: { ca: null, cert: null, key: null, serverName: null },
    keyPrefix: "zenml:stream:server",
    maxConnections: 10,
    socketTimeoutSeconds: 2,
    maxStreamLength: 10_000,
    streamTtlSeconds: 3_600,
    pingOnStart: true,
    ...options,
  };
}

/** A broker, not started. */
export function makeBroker(
  options: Partial<RedisOptions>,
  context: Partial<BrokerContext> = {},
  timings?: ReadTimings,
): TestBroker {
  const log: TestLog = { lines: [] };
  const write = (level: string) => (fields: object, message: string) => void log.lines.push({ level, fields, message });
  const counts: Counts = {
    connected: { command: 0, read: 0, wake: 0 },
    reconnects: 0,
    errors: { connection: 0, timeout: 0, reply: 0, moved: 0 },
    reads: 0,
    dropped: 0,
    mode: "",
  };
  const whole: BrokerContext = {
    deploymentId: DEPLOYMENT,
    tailEntries: TAIL_ENTRIES,
    log: { info: write("info"), warn: write("warn"), error: write("error") },
    metrics: {
      redisConnected: (role, connected) => {
        counts.connected[role] = connected;
      },
      redisReconnect: () => {
        counts.reconnects++;
      },
      redisError: (type) => {
        counts.errors[type]++;
      },
      redisReads: (count) => {
        counts.reads += count;
      },
      readMode: (mode) => {
        counts.mode = mode;
      },
      duplicateDropped: (count) => {
        counts.dropped += count;
      },
    },
    ...context,
  };
  const broker = createRedisBroker(redisOptions(options), whole, timings);
  return { broker, log, counts, close: () => broker.close() };
}

export async function startBroker(
  options: Partial<RedisOptions>,
  context: Partial<BrokerContext> = {},
  timings?: ReadTimings,
): Promise<TestBroker> {
  const made = makeBroker(options, context, timings);
  await made.broker.start();
  return made;
}

export function keyOf(runId: string): string {
  return `zenml:stream:server:${DEPLOYMENT}:run:${runId}`;
}

/** A broker frame as a publisher makes it. */
export function frame(number: number): Buffer {
  return Buffer.from(
    `{"type":"event","event":{"pipeline_run_id":"r","kind":"token","index":${number},"payload":{"n":${number}}}}`,
  );
}

export function frames(count: number, first = 0): Buffer[] {
  return Array.from({ length: count }, (_, index) => frame(first + index));
}

/** Publishes numbered frames, one publish, and returns the last id. */
export async function publish(broker: Broker, runId: string, count: number, first = 0): Promise<EventId> {
  const { lastId } = await broker.publish({ runId, entries: frames(count, first), idempotency: null });
  return lastId!;
}

/** Hears a run and writes it down. */
export class Recorder implements RunObserver {
  /** In order: `tail`, `gap <reason>`, `outage`, `recovered`, and the number of each entry. */
  readonly calls: string[] = [];
  readonly entries: StoredEntry[] = [];
  readonly gaps: { gap: Gap; newest: EventId | null }[] = [];
  readonly marks: EventId[] = [];
  tail: Tail | null = null;
  /** Ids out of order without a rollback, or ids heard twice; must stay empty. */
  readonly faults: string[] = [];
  #seen = new Set<EventId>();
  #last: EventId | null = null;

  onTail(tail: Tail): void {
    if (this.tail !== null) this.faults.push("a second tail");
    this.calls.push("tail");
    this.tail = tail;
    this.#take(tail.entries);
  }

  onEntries(entries: readonly StoredEntry[]): void {
    if (this.tail === null) this.faults.push("entries before the tail");
    this.#take(entries);
  }

  onGap(gap: Gap, newest: EventId | null): void {
    this.calls.push(`gap ${gap.reason}`);
    this.gaps.push({ gap, newest });
    if (gap.reason === "rollback") {
      this.#last = null;
      this.#seen.clear();
    }
  }

  onMark(endedId: EventId): void {
    this.marks.push(endedId);
  }

  onOutage(): void {
    this.calls.push("outage");
  }

  onRecovered(): void {
    this.calls.push("recovered");
  }

  hasSeen(id: EventId): boolean {
    return this.#seen.has(id);
  }

  get numbers(): number[] {
    return this.entries.map(numberOf);
  }

  get ids(): EventId[] {
    return this.entries.map((entry) => entry.id);
  }

  async until(what: string, isTrue: () => boolean, limitMs = 15_000): Promise<void> {
    await waitFor(what, isTrue, limitMs).catch((error: Error) => {
      throw new Error(`${error.message}; heard: ${this.calls.slice(-40).join(", ")}`);
    });
  }

  async hear(count: number, limitMs = 15_000): Promise<void> {
    await this.until(`${count} entries, ${this.entries.length} heard`, () => this.entries.length >= count, limitMs);
  }

  #take(entries: readonly StoredEntry[]): void {
    for (const entry of entries) {
      if (this.#seen.has(entry.id)) this.faults.push(`${entry.id} twice`);
      if (this.#last !== null && compareEventIds(entry.id, this.#last) <= 0) this.faults.push(`${entry.id} after ${this.#last}`);
      this.#last = entry.id;
      this.#seen.add(entry.id);
      this.entries.push({ id: entry.id, payload: entry.payload && Buffer.from(entry.payload) });
      this.calls.push(`${numberOf(entry)}`);
    }
  }
}

function numberOf(entry: StoredEntry): number {
  return Number(/"n":(\d+)/.exec(String(entry.payload))?.[1] ?? -1);
}
