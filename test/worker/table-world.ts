/** A run table over the embedded broker, with sinks that are arrays, and counts of what both did. */
import type { Broker, Position } from "../../gateway/broker/broker.ts";
import { createMemoryBroker } from "../../gateway/broker/memory.ts";
import { EVERYTHING } from "../../gateway/stream/filter.ts";
import type { CloseReason, Sink } from "../../gateway/stream/sink.ts";
import { type ConnectionCounters, RunTable, type TableSettings } from "../../gateway/worker/run-table.ts";
import { LocalCounts, type Slot, type Subscription } from "../../gateway/worker/streams.ts";
import { MemoryLog } from "../support/memory-log.ts";

export const SETTINGS: TableSettings = {
  ringEvents: 1_024,
  ringBytes: 4 * 1024 * 1024,
  ringTotalBytes: 64 * 1024 * 1024,
  coalesceMs: 10,
  slowConsumer: "replay",
  pageEntries: 256,
  heartbeatMs: 30_000,
  stallMs: 30_000,
  idleGraceMs: 30_000,
  maxConnections: 18_000,
  maxAgeMs: 0,
};

/** One client: what it got, and whether its socket takes more. */
export class Client implements Sink {
  text = "";
  writes = 0;
  takes = true;
  ended = false;
  subscription!: Subscription;

  write(frames: Uint8Array): boolean {
    this.text += Buffer.from(frames).toString();
    this.writes++;
    return this.takes;
  }
  end(last: Uint8Array | null): void {
    if (last !== null) this.text += Buffer.from(last).toString();
    this.ended = true;
  }
  abort(): void {
    this.ended = true;
  }
  drain(): void {
    this.takes = true;
    this.subscription.drained();
  }
  get kinds(): string[] {
    return [...this.text.matchAll(/^event: (.*)$/gm)].map((match) => match[1]!);
  }
}

export interface OpenAs {
  readonly position?: Position;
  readonly tail?: number;
  readonly sink?: Client;
}

export class TableWorld {
  readonly broker: Broker;
  readonly table: RunTable;
  readonly log = new MemoryLog();
  readonly closed: CloseReason[] = [];
  watches = 0;
  pageReads = 0;

  constructor(settings: Partial<TableSettings> = {}, mostPerRun = 100) {
    const memory = { totalBytes: 256 * 1024 * 1024, maxStreamLength: 10_000, streamTtlSeconds: 3_600 };
    const metrics = {
      redisConnected() {},
      redisReconnect() {},
      redisError() {},
      redisReads() {},
      readMode() {},
      duplicateDropped() {},
    };
    const broker = createMemoryBroker(memory, { deploymentId: null, tailEntries: 256, log: this.log, metrics });
    this.broker = broker;
    const counted: Broker = Object.create(broker, {
      watch: { value: (...call: Parameters<Broker["watch"]>) => this.#count("watches", () => broker.watch(...call)) },
      readPage: { value: (...call: Parameters<Broker["readPage"]>) => this.#count("pageReads", () => broker.readPage(...call)) },
      findTail: { value: (...call: Parameters<Broker["findTail"]>) => broker.findTail(...call) },
      markEnded: { value: (...call: Parameters<Broker["markEnded"]>) => broker.markEnded(...call) },
      clearEnded: { value: (...call: Parameters<Broker["clearEnded"]>) => broker.clearEnded(...call) },
    });
    const counters: ConnectionCounters = {
      opened() {},
      closed: (reason) => this.closed.push(reason),
      rejected() {},
      delivered() {},
      replayed() {},
      heartbeat() {},
      gap() {},
      resumed() {},
      backpressure() {},
      unknownEntry() {},
      lag() {},
    };
    this.table = new RunTable(counted, { ...SETTINGS, ...settings }, new LocalCounts(mostPerRun), counters, this.log);
  }

  open(runId: string, { position, tail, sink = new Client() }: OpenAs = {}): Client {
    // With counts of its own a table asks nobody.
    const slot = this.table.claim(runId) as Slot;
    const request = { position: position ?? null, tail: tail ?? null, filter: EVERYTHING, expiresAt: null, sink };
    sink.subscription = slot.open(request);
    return sink;
  }

  async publish(runId: string, kinds: readonly string[], payload = ""): Promise<void> {
    const entries = kinds.map((kind) =>
      Buffer.from(
        `{"type":"event","event":{"pipeline_run_id":"${runId}","step_run_id":null,"step_name":null,"kind":"${kind}","correlation_id":null,"index":null,"payload":{"text":"${payload}"}}}`,
      ),
    );
    await this.broker.publish({ runId, entries, idempotency: null });
  }

  async close(): Promise<void> {
    this.table.close();
    await this.broker.close();
  }

  #count<T>(what: "watches" | "pageReads", call: () => T): T {
    this[what]++;
    return call();
  }
}
