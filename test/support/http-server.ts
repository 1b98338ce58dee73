/** A real HTTP server of the gateway for tests, over a table of streams that does nothing but remember: the test writes. */
import type { Authenticator, Identity } from "../../gateway/auth/authenticator.ts";
import { openToAll } from "../../gateway/auth/none.ts";
import type { Broker, BrokerContext } from "../../gateway/broker/broker.ts";
import { createMemoryBroker, type MemoryBroker } from "../../gateway/broker/memory.ts";
import { RequestError } from "../../gateway/errors.ts";
import { createHttpServer, type HttpServer, type HttpSettings } from "../../gateway/http/server.ts";
import { createMetrics, type Metrics } from "../../gateway/metrics/metrics.ts";
import { parseBatch } from "../../gateway/publish/batch.ts";
import type { Sink } from "../../gateway/stream/sink.ts";
import type { OpenRequest, Slot, Streams } from "../../gateway/worker/streams.ts";
import { MemoryLog } from "./memory-log.ts";

/** One stream that was opened, with what its sink reported. */
export interface OpenedStream {
  readonly runId: string;
  readonly request: OpenRequest;
  readonly sink: Sink;
  drained: number;
  progressed: number;
  closed: number;
  /** Called at each `drained`. */
  onDrained: () => void;
}

export class RecordingStreams implements Streams {
  readonly opened: OpenedStream[] = [];
  /** Slots claimed and not given back. */
  taken = 0;
  /** Set to refuse the next claims. */
  refusal: RequestError | null = null;
  #waiters: (() => void)[] = [];

  claim(runId: string): Slot {
    if (this.refusal !== null) throw this.refusal;
    this.taken++;
    return {
      release: () => {
        this.taken--;
      },
      open: (request) => {
        const stream: OpenedStream = {
          runId,
          request,
          sink: request.sink,
          drained: 0,
          progressed: 0,
          closed: 0,
          onDrained: () => {},
        };
        this.opened.push(stream);
        for (const wake of this.#waiters.splice(0)) wake();
        return {
          drained() {
            stream.drained++;
            stream.onDrained();
          },
          progressed() {
            stream.progressed++;
          },
          closed: () => {
            stream.closed++;
            this.taken--;
          },
        };
      },
    };
  }

  /** The stream of that number, as soon as it is open. */
  async stream(index: number): Promise<OpenedStream> {
    while (this.opened.length <= index) await new Promise<void>((resolve) => this.#waiters.push(resolve));
    return this.opened[index]!;
  }
}

export interface TestServer {
  readonly server: HttpServer;
  readonly port: number;
  readonly streams: RecordingStreams;
  readonly broker: MemoryBroker;
  readonly metrics: Metrics;
  readonly log: MemoryLog;
  close(): Promise<void>;
}

export interface TestServerOptions {
  readonly settings?: Partial<HttpSettings>;
  readonly authenticator?: Authenticator;
  /** Instead of the memory broker; null for none. */
  readonly broker?: Broker | null;
  readonly deploymentId?: string | null;
}

export const TEST_SETTINGS: HttpSettings = {
  pathPrefix: "",
  runIds: "any",
  maxConnections: 1_000,
  stallSeconds: 30,
  allowedOrigins: [],
};

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const streams = new RecordingStreams();
  const metrics = createMetrics({ processMetrics: false });
  const log = new MemoryLog();
  const memory = createMemoryBroker(
    { totalBytes: 64 * 1024 * 1024, maxStreamLength: 10_000, streamTtlSeconds: 3_600 },
    brokerContext(log),
  );
  const broker = options.broker === undefined ? memory : options.broker;
  const server = createHttpServer({
    settings: { ...TEST_SETTINGS, ...options.settings },
    info: { deploymentId: options.deploymentId ?? null, version: "0.0.0-test" },
    broker,
    streams: broker === null ? null : streams,
    authenticator: options.authenticator ?? openToAll(),
    parseBatch,
    metrics,
    log,
  });
  const port = await server.listen("127.0.0.1", 0);
  return {
    server,
    port,
    streams,
    broker: memory,
    metrics,
    log,
    async close() {
      server.close();
      await memory.close();
    },
  };
}

/** Knows one token, `test-token`, at once or after a while. Its holder may read, and publish to runs whose name does not begin with "no". */
export function oneToken(delayed: boolean): Authenticator {
  const identity: Identity = {
    id: "tester",
    expiresAt: 4_102_444_800_000,
    can: (action, runId) => action === "read" || !runId.startsWith("no"),
  };
  return {
    scheme: "OAUTH2_PASSWORD_BEARER",
    authenticate(credentials) {
      const check = (): Identity => {
        if (credentials.authorization !== "Bearer test-token")
          throw new RequestError("PENSTOCK_UNAUTHORIZED", 401, "Not authenticated.");
        return identity;
      };
      return delayed ? new Promise((resolve) => setImmediate(resolve)).then(check) : check();
    },
    close() {},
  };
}

function brokerContext(log: BrokerContext["log"]): BrokerContext {
  const nothing = () => {};
  return {
    deploymentId: null,
    tailEntries: 1_024,
    log,
    metrics: {
      redisConnected: nothing,
      redisReconnect: nothing,
      redisError: nothing,
      redisReads: nothing,
      readMode: nothing,
      duplicateDropped: nothing,
    },
  };
}
