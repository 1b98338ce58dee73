/** A worker in a process of its own: the program that the supervisor starts, one a core. It lives as long as its supervisor. */
import { setTimeout as sleep } from "node:timers/promises";
import { PenstockError } from "../errors.ts";
import { createMetrics, type Metrics, type SnapshotPart } from "../metrics/metrics.ts";
import { Channel, type IpcEnd } from "../supervisor/channel.ts";
import { dieLoudly } from "../supervisor/die-loudly.ts";
import { createLog } from "../supervisor/log.ts";
import { type FromWorker, IPC_VERSION, type StartFailure, type ToWorker, type WorkerStart } from "../supervisor/messages.ts";
import { VERSION } from "../version.ts";
import { PodCounts } from "./pod-counts.ts";
import { Worker } from "./worker.ts";

const HEALTH_MS = 1_000;
/** What was said last is on its way. */
const FAREWELL_MS = 50;

class WorkerProcess {
  readonly #channel: Channel<FromWorker, ToWorker>;
  #worker: Worker | null = null;
  #counts: PodCounts | null = null;

  constructor(end: IpcEnd) {
    this.#channel = new Channel<FromWorker, ToWorker>(end, (message) => this.#received(message));
    this.#channel.send({ type: "hello", version: IPC_VERSION, program: VERSION });
  }

  #received(message: ToWorker): void {
    switch (message.type) {
      case "start":
        void this.#start(message.start);
        break;
      case "drain":
        void this.#drain(message.seconds);
        break;
      case "close":
        void this.#close();
        break;
      case "snapshot":
        void this.#sendSnapshot(message.part);
        break;
      case "poll":
        this.#channel.send({ type: "polled", id: message.id, count: this.#counts?.poll(message.runId) ?? 0 });
        break;
      case "claimed":
        this.#counts?.claimed(message.id, message.granted);
    }
  }

  async #start({ config, index, workers }: WorkerStart): Promise<void> {
    const log = createLog(config.log, { fields: { worker: index } });
    dieLoudly(log, (code) => process.exit(code));
    const metrics: Metrics = createMetrics();
    const counts = new PodCounts(
      config.streaming.maxSubscribersPerStream,
      workers,
      (id, runId) => this.#channel.send({ type: "claim", id, runId }),
      () => metrics.inc("penstock_claims_unanswered_total"),
    );
    const worker = new Worker(config, { metrics, log, fleet: { workers, counts } });
    this.#counts = counts;
    this.#worker = worker;
    const tellHealth = (): void => void this.#channel.send({ type: "health", health: worker.health() });
    // Also while it starts: a broker that is slow is no worker that is stuck.
    setInterval(tellHealth, HEALTH_MS);
    try {
      const { port } = await worker.start();
      this.#channel.send({ type: "started", port });
    } catch (error) {
      this.#channel.send({ type: "failed", error: failureOf(error) });
      return;
    }
    tellHealth();
  }

  async #drain(seconds: number): Promise<void> {
    await this.#worker?.drain(seconds);
    await this.#sendSnapshot("all");
    this.#channel.send({ type: "drained" });
  }

  async #close(): Promise<void> {
    await this.#worker?.close();
    await this.#sendSnapshot("all");
    await sleep(FAREWELL_MS);
    process.exit(0);
  }

  async #sendSnapshot(part: SnapshotPart): Promise<void> {
    if (this.#worker !== null) this.#channel.send({ type: "snapshot", snapshot: await this.#worker.snapshot(part) });
  }
}

function failureOf(error: unknown): StartFailure {
  if (error instanceof PenstockError) return { name: error.name, code: error.code, message: error.message };
  return { name: "Error", code: null, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}

// A terminal sends Ctrl-C to all of a group, and some managers SIGTERM: what is to be done then the supervisor says.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => {});
// Without a supervisor nobody drains, counts or measures this worker: its clients are better served by the next gateway on this port.
process.on("disconnect", () => process.exit(1));
new WorkerProcess(process);
