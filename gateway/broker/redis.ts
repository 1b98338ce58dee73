/** The broker on Redis Streams: standalone, Sentinel or Cluster, as it turns out to be. */
import type { EventId } from "../../protocol/event-id.ts";
import { BrokerStartError, BrokerUnavailableError } from "../errors.ts";
import type {
  Broker,
  BrokerContext,
  BrokerHealth,
  HistoryPage,
  Position,
  PublishRequest,
  PublishResult,
  RunObserver,
  Watch,
} from "./broker.ts";
import { DuplicateFilter, END_TEXT, isEndPayload, takeEntries } from "./redis/entries.ts";
import { execute } from "./redis/execute.ts";
import { History } from "./redis/history.ts";
import { IdempotentPublisher } from "./redis/idempotency.ts";
import { Keys } from "./redis/keys.ts";
import { Marks } from "./redis/marks.ts";
import { Nodes } from "./redis/nodes.ts";
import { Publisher } from "./redis/publisher.ts";
import { RunReader } from "./redis/reader.ts";
import { type Reply, ReplyError } from "./redis/resp.ts";
import { type RedisOptions, readTarget } from "./redis/target.ts";

/** Publishes are answered a little before the socket timeout, so that the answer is out in time. */
const DEADLINE_SHARE = 0.95;

/** Entries with an Idempotency-Key that are remembered to know a second one by; about 100 bytes each. */
const REMEMBERED_MARKS = 65_536;

/** How often runs are looked at though nothing was heard of them. */
export interface ReadTimings {
  readonly sweepMs: number;
  /** An idle run's counts are compared so often: what was deleted from its middle is found by nothing else. */
  readonly proofMs: number;
}

const TIMINGS: ReadTimings = { sweepMs: 5_000, proofMs: 60_000 };

/** Throws BrokerStartError when the options cannot be used. */
export function createRedisBroker(options: RedisOptions, context: BrokerContext, timings: ReadTimings = TIMINGS): Broker {
  return new RedisBroker(options, context, timings);
}

class RedisBroker implements Broker {
  readonly #options: RedisOptions;
  readonly #keys: Keys;
  readonly #nodes: Nodes;
  readonly #history: History;
  readonly #publisher: Publisher;
  readonly #idempotent: IdempotentPublisher;
  readonly #marks: Marks;

  constructor(options: RedisOptions, context: BrokerContext, timings: ReadTimings) {
    const { deploymentId, tailEntries, log, metrics } = context;
    if (deploymentId === null || deploymentId === "") {
      throw new BrokerStartError("Redis needs a deployment id; set --deployment-id, or PENSTOCK_DEPLOYMENT_ID.");
    }
    const socketTimeoutMs = options.socketTimeoutSeconds * 1_000;
    const timeoutMs = socketTimeoutMs * DEADLINE_SHARE;
    this.#options = options;
    this.#keys = new Keys(options.keyPrefix, deploymentId);
    this.#nodes = new Nodes({
      target: readTarget(options),
      timeoutMs: socketTimeoutMs,
      maxConnections: options.maxConnections,
      keys: this.#keys,
      settings: {
        ...timings,
        duplicates: new DuplicateFilter(REMEMBERED_MARKS),
        tailEntries,
        streamTtlMs: options.streamTtlSeconds * 1_000,
        duplicateDropped: (count) => metrics.duplicateDropped(count),
        reads: (count) => metrics.redisReads(count),
      },
      log,
      metrics,
      readMark: (reader) => this.#readMark(reader),
    });
    this.#marks = new Marks(this.#nodes, this.#keys, timeoutMs);
    this.#history = new History(this.#nodes, this.#keys, this.#marks, timeoutMs, {
      duplicateDropped: (count) => metrics.duplicateDropped(count),
      reads: (count) => metrics.redisReads(count),
    });
    this.#publisher = new Publisher(this.#nodes, {
      timeoutMs,
      maxStreamLength: options.maxStreamLength,
      streamTtlSeconds: options.streamTtlSeconds,
    });
    this.#idempotent = new IdempotentPublisher(this.#nodes, this.#keys, this.#publisher, timeoutMs);
    metrics.readMode("tracking");
  }

  async start(): Promise<void> {
    if (this.#options.pingOnStart) {
      try {
        await this.#nodes.start();
        await this.#probe();
      } catch (error) {
        this.#nodes.close();
        throw new BrokerStartError(explain(error as Error), { cause: error });
      }
    }
    this.#nodes.run();
  }

  publish(request: PublishRequest): Promise<PublishResult> {
    if (request.entries.length === 0) return Promise.resolve({ count: 0, lastId: null });
    if (request.idempotency !== null) return this.#idempotent.publish(request, request.idempotency);
    const entries = request.entries.map((payload) => ({ payload, mark: null }));
    return this.#publisher.add(this.#keys.run(request.runId), entries, this.#publisher.deadline());
  }

  async end(runId: string): Promise<{ readonly lastId: EventId }> {
    const deadline = this.#publisher.deadline();
    const key = this.#keys.run(runId);
    const [reply] = await execute(this.#nodes, key, [["XREVRANGE", key, "+", "-", "COUNT", "1"]], deadline);
    const newest = takeEntries(reply as Reply[], 0, new DuplicateFilter(1)).entries[0];
    if (newest === undefined) {
      // Nothing of a stream: only the mark can tell that the run has ended.
      const mark = await this.#marks.get(runId, deadline);
      if (mark !== null) return { lastId: mark };
    } else if (isEndPayload(newest.payload)) {
      this.#marks.set(runId, newest.id);
      return { lastId: newest.id };
    }
    const entry = { payload: Buffer.from(END_TEXT), mark: null };
    const { lastId } = await this.#publisher.add(key, [entry], deadline);
    if (lastId === null) throw new BrokerUnavailableError("Redis gave the end of the run no id.");
    // The end is stored: the mark, which only helps when the stream is gone, may follow when Redis is back.
    await this.#marks.write(runId, lastId, deadline).catch(() => this.#marks.set(runId, lastId));
    return { lastId };
  }

  markEnded(runId: string, endedId: EventId): void {
    this.#marks.set(runId, endedId);
  }

  clearEnded(runId: string): void {
    this.#marks.clear(runId);
  }

  readPage(runId: string, position: Position | null, limit: number): Promise<HistoryPage> {
    return this.#history.readPage(runId, position, limit);
  }

  findTail(runId: string, count: number): Promise<Position | null> {
    return this.#history.findTail(runId, count);
  }

  watch(runId: string, observer: RunObserver): Watch {
    const { watch } = new RunReader(runId, this.#keys.run(runId), observer, this.#nodes.nowhere);
    this.#nodes.attach(watch.reader);
    return {
      close: () => {
        const { reader } = watch;
        if (reader.isClosed) return;
        reader.isClosed = true;
        this.#nodes.detach(reader);
      },
    };
  }

  health(): BrokerHealth {
    return this.#nodes.health();
  }

  async close(): Promise<void> {
    this.#marks.close();
    this.#nodes.close();
  }

  /** Reads a key that is never written: whether the user may read this deployment's keys, streams and marks. */
  async #probe(): Promise<void> {
    const key = this.#keys.startupProbe();
    const node = this.#nodes.nodeFor(key) ?? this.#nodes.all[0]!;
    const replies = await node.client.run([
      ["XREVRANGE", key, "+", "-", "COUNT", "1"],
      ["GET", key],
    ]);
    const refusal = replies.find((reply) => reply instanceof ReplyError);
    if (refusal !== undefined) throw new Error(`${node.name}: ${refusal.message}`);
  }

  #readMark(reader: RunReader): object {
    const request = {};
    void this.#marks.read(reader.runId).then((mark) => reader.onMark(request, mark));
    return request;
  }
}

/** One line that says what to do. */
function explain(error: Error): string {
  const { message } = error;
  if (/ECONNREFUSED|ENOENT/.test(message)) return `${message}; is Redis running there, and are host and port right?`;
  if (/ENOTFOUND|EAI_AGAIN/.test(message)) return `${message}; the host's name is not known here.`;
  if (/WRONGPASS|NOAUTH|invalid password|invalid username/i.test(message)) return `${message}; set the right user and password.`;
  if (/NOPERM/.test(message)) return `${message}; the ACL user needs the commands and keys that the documentation lists.`;
  if (/certificate|self.signed|altnames/i.test(message))
    return `${message}; set redis.tls.caFile to the CA of Redis' certificate.`;
  if (/wrong version number|packet length|ECONNRESET|EPROTO|closed/i.test(message)) {
    return `${message}; use rediss:// if Redis speaks TLS there, and redis:// if not.`;
  }
  return message;
}
