/** The main process: starts the workers, answers on the admin port, lets go of everything in the right order. On no event's way. */
import { setTimeout as wait } from "node:timers/promises";
import type { GatewayConfig } from "../config.ts";
import { mergeSnapshots } from "../metrics/merge.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { AdminServer, type Readiness } from "./admin-server.ts";
import { PortLock } from "./port-lock.ts";
import type { Log, WorkerHandle } from "./worker-handle.ts";

export interface SupervisorParts {
  readonly config: GatewayConfig;
  readonly worker: WorkerHandle;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface Addresses {
  readonly port: number;
  readonly adminPort: number;
}

type State = "starting" | "serving" | "draining" | "stopped";

export class Supervisor {
  readonly #parts: SupervisorParts;
  readonly #admin: AdminServer;
  #state: State = "starting";
  #lock: PortLock | null = null;

  constructor(parts: SupervisorParts) {
    this.#parts = parts;
    this.#admin = new AdminServer({
      metrics: async () => mergeSnapshots(await parts.worker.snapshots()),
      readiness: () => this.readiness(),
      failed: (error) => parts.log.error({ error: error.message }, "the admin port could not answer"),
    });
  }

  /** Throws ConfigError, ListenError or BrokerStartError, with nothing left open. */
  async start(): Promise<Addresses> {
    const { config, worker } = this.#parts;
    try {
      // First, so that liveness answers while the broker is being probed.
      const adminPort = await this.#admin.listen(config.adminHost, config.adminPort);
      this.#lock = await PortLock.take(config.host, config.port);
      const { port } = await worker.start();
      // A free port was found: nobody had it before.
      this.#lock ??= await PortLock.take(config.host, port);
      if (this.#state === "starting") this.#state = "serving";
      return { port, adminPort };
    } catch (error) {
      this.#state = "stopped";
      await Promise.allSettled([worker.close(), this.#admin.close()]);
      this.#lock?.release();
      throw error;
    }
  }

  readiness(): Readiness {
    if (this.#state !== "serving") return { ready: false, detail: this.#state };
    const { ready, detail } = this.#parts.worker.health();
    return { ready, detail };
  }

  /** The drain: readiness off, a pause for load balancers to notice, then the streams go in slices, then everything closes. */
  async drain(): Promise<void> {
    if (this.#state === "draining" || this.#state === "stopped") return;
    const { config, worker, metrics, log } = this.#parts;
    this.#state = "draining";
    metrics.set("penstock_draining", 1);
    log.info({ delaySeconds: config.drain.delaySeconds, connections: worker.health().connections }, "draining");
    await wait(config.drain.delaySeconds * 1_000);
    await worker.drain(config.drain.seconds);
    await this.close();
    log.info({}, "stopped");
  }

  /** At once. */
  async close(): Promise<void> {
    this.#state = "stopped";
    await this.#parts.worker.close();
    this.#lock?.release();
    await this.#admin.close();
  }
}
