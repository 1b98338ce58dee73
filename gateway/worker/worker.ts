/** One worker: the broker, the runs that its clients watch, and the HTTP server, made from the configuration. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Authenticator } from "../auth/authenticator.ts";
import { createAuthenticator } from "../auth/create.ts";
import type { Broker } from "../broker/broker.ts";
import type { GatewayConfig } from "../config.ts";
import {
  createHttpServer,
  DEFAULT_ANSWER_BUDGET_BYTES,
  DEFAULT_BODY_BUDGET_BYTES,
  type HttpServer,
  type HttpSettings,
} from "../http/server.ts";
import type { Metrics, MetricsSnapshot, SnapshotPart } from "../metrics/metrics.ts";
import { Overload } from "../overload/overload.ts";
import { Probe } from "../overload/probe.ts";
import { parseBatch } from "../publish/batch.ts";
import { DEFAULT_PAGE_ENTRIES } from "../stream/run-host.ts";
import type { Log, ProcessSnapshot, WorkerHandle, WorkerHealth } from "../supervisor/worker-handle.ts";
import { VERSION } from "../version.ts";
import { memoryLimitBytes } from "./memory-limit.ts";
import { openBroker } from "./open-broker.ts";
import { RunTable, type TableSettings } from "./run-table.ts";
import { streamCounters } from "./stream-counters.ts";
import { LocalCounts, type SubscriberCounts } from "./streams.ts";

/** What a worker shares with the process that it lives in. */
export interface WorkerParts {
  readonly metrics: Metrics;
  readonly log: Log;
  /** Absent for the only worker of a gateway. */
  readonly fleet?: FleetParts;
}

/** What a worker shares with others. */
export interface FleetParts {
  /** Most workers that there will be. */
  readonly workers: number;
  readonly counts: SubscriberCounts;
}

/** Nothing is connected or bound before `start`. */
export class Worker implements WorkerHandle {
  readonly #config: GatewayConfig;
  readonly #metrics: Metrics;
  readonly #log: Log;
  readonly #fleet: FleetParts | null;
  #broker: Broker | null = null;
  #table: RunTable | null = null;
  #server: HttpServer | null = null;
  #authenticator: Authenticator | null = null;
  #overload: Overload | null = null;

  constructor(config: GatewayConfig, { metrics, log, fleet }: WorkerParts) {
    this.#config = config;
    this.#metrics = metrics;
    this.#log = log;
    this.#fleet = fleet ?? null;
  }

  async start(): Promise<{ readonly port: number }> {
    const config = this.#config;
    this.#authenticator = createAuthenticator(config.auth, this.#log);
    this.#broker = await openBroker(config, this.#metrics, this.#log);
    await this.#broker?.start();
    if (this.#broker !== null) {
      const counts = this.#fleet?.counts ?? new LocalCounts(config.streaming.maxSubscribersPerStream);
      this.#table = new RunTable(
        this.#broker,
        tableSettings(config, this.#workers),
        counts,
        streamCounters(this.#metrics),
        this.#log,
      );
    }
    this.#server = createHttpServer({
      settings: {
        pathPrefix: config.pathPrefix,
        runIds: config.runIds,
        maxConnections: config.streaming.maxConnectionsPerWorker,
        stallSeconds: config.streaming.stallSeconds,
        allowedOrigins: config.cors.allowedOrigins,
        sharePort: this.#fleet !== null,
        ...byteBudgets(memoryShareBytes(config, this.#workers)),
      },
      info: { deploymentId: config.deploymentId, version: VERSION },
      broker: this.#broker,
      streams: this.#table,
      authenticator: this.#authenticator,
      parseBatch,
      metrics: this.#metrics,
      log: this.#log,
    });
    if (this.#table !== null) this.#overload = this.#watchLoad(this.#table, this.#server);
    const port = await this.#server.listen(config.host, config.port);
    this.#overload?.start();
    return { port };
  }

  async drain(seconds: number): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    const deadline = performance.now() + seconds * 1000;
    server.startDraining();
    await this.#table?.drain(seconds, this.#config.drain.frames);
    // A publish under way is answered, or its producer would send it again.
    await until(() => server.openExchanges === 0, deadline - performance.now());
    // What was written last is on its way: who reads it closes the connection, as each answer of a drain asks.
    await until(() => server.connections === 0, FAREWELL_MS);
  }

  async snapshots(): Promise<readonly ProcessSnapshot[]> {
    this.#metrics.set("penstock_workers", 1);
    return [{ worker: 0, metrics: await this.snapshot("all") }];
  }

  snapshot(part: SnapshotPart): Promise<MetricsSnapshot> {
    const metrics = this.#metrics;
    metrics.set("penstock_connections", this.#table?.connections ?? 0);
    metrics.set("penstock_worker_connections", this.#table?.connections ?? 0);
    metrics.set("penstock_runs", this.#table?.runs ?? 0);
    metrics.set("penstock_ring_bytes", this.#table?.ringBytes ?? 0);
    return metrics.snapshot(part);
  }

  health(): WorkerHealth {
    const connections = this.#table?.connections ?? 0;
    if (this.#server === null) return { ready: false, detail: "starting", connections };
    if (this.#broker === null)
      return { ready: true, detail: "no broker is configured: publishing and reading answer 501", connections };
    if (this.#overload?.isReady === false) return { ready: false, detail: this.#overload.detail, connections };
    // Streams that are open wait out an outage; a worker that can neither read nor publish should get no new ones meanwhile.
    const { readable, writable, detail } = this.#broker.health();
    return { ready: readable || writable, detail, connections };
  }

  async close(): Promise<void> {
    this.#overload?.close();
    this.#table?.close();
    this.#server?.close();
    this.#authenticator?.close();
    await this.#broker?.close();
  }

  get #workers(): number {
    return this.#fleet?.workers ?? 1;
  }

  #watchLoad(table: RunTable, server: HttpServer): Overload {
    const { enabled, maxLoopLagMs, memoryLimitBytes } = this.#config.overload;
    const probe = new Probe({
      memoryLimitBytes,
      workers: this.#workers,
      maxLoopLagMs,
      maxConnections: server.maxConnections,
      connections: () => server.connections,
      blocked: () => table.blocked,
    });
    return new Overload({
      brakes: table,
      probe,
      metrics: this.#metrics,
      log: this.#log,
      enabled,
      holdBackBodies: (on) => server.holdBackBodies(on),
    });
  }
}

const MIB = 2 ** 20;
const FAREWELL_MS = 1_000;
const STEP_MS = 20;

async function until(isTrue: () => boolean, limitMs: number): Promise<void> {
  for (let waitedMs = 0; waitedMs < limitMs && !isTrue(); waitedMs += STEP_MS) await sleep(STEP_MS);
}

/** What this worker may take of the memory. */
function memoryShareBytes({ overload }: GatewayConfig, workers: number): number {
  return (overload.memoryLimitBytes ?? memoryLimitBytes()) / workers;
}

/** Bodies that come, and long answers that wait to be taken: a quarter and an eighth, within what is ever needed. */
function byteBudgets(shareBytes: number): Pick<HttpSettings, "bodyBudgetBytes" | "answerBudgetBytes"> {
  const within = (bytes: number, most: number): number => Math.floor(Math.max(32 * MIB, Math.min(bytes, most)));
  return {
    bodyBudgetBytes: within(shareBytes / 4, DEFAULT_BODY_BUDGET_BYTES),
    answerBudgetBytes: within(shareBytes / 8, DEFAULT_ANSWER_BUDGET_BYTES),
  };
}

function tableSettings(config: GatewayConfig, workers: number): TableSettings {
  const { flow, streaming } = config;
  return {
    ringEvents: flow.ring.events,
    ringBytes: flow.ring.bytes,
    ringTotalBytes: flow.ring.totalBytes ?? memoryShareBytes(config, workers) / 4,
    coalesceMs: flow.coalesceMs,
    slowConsumer: streaming.slowConsumer,
    pageEntries: DEFAULT_PAGE_ENTRIES,
    heartbeatMs: streaming.heartbeatSeconds * 1000,
    stallMs: streaming.stallSeconds * 1000,
    idleGraceMs: streaming.idleGraceSeconds * 1000,
    maxConnections: streaming.maxConnectionsPerWorker,
    maxAgeMs: flow.maxAgeMinutes * 60_000,
  };
}
