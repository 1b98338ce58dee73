/** The workers, each a process: as many as wanted, started again when they end, more and fewer as connections come and go. */
import type { GatewayConfig } from "../config.ts";
import { freePort } from "../http/free-port.ts";
import type { Metrics, MetricsSnapshot } from "../metrics/metrics.ts";
import { SnapshotArchive } from "../metrics/snapshot-archive.ts";
import { BackOff } from "./back-off.ts";
import { FleetSize, type WorkerRange } from "./fleet-size.ts";
import { SubscriberPolls } from "./subscriber-polls.ts";
import type { Log, ProcessSnapshot, WorkerHandle, WorkerHealth } from "./worker-handle.ts";
import { STUCK_SECONDS, type WorkerEvents, WorkerProcess } from "./worker-process.ts";

const TICK_MS = 1_000;
/** Sizing looks this often: a worker that has just come must have had time to take its share. */
const SIZE_TICKS = 5;
/** What a worker measured is fetched also when nobody asks, so that little is lost with it. */
const SNAPSHOT_TICKS = 5;
const SNAPSHOT_LIMIT_MS = 1_000;

interface Place {
  readonly backOff: BackOff;
  /** A worker has been up here: the next one that ends is started again. */
  hasServed: boolean;
  worker: WorkerProcess | null;
  retry: NodeJS.Timeout | null;
}

export class Fleet implements WorkerHandle, WorkerEvents {
  readonly #config: GatewayConfig;
  readonly #range: WorkerRange;
  readonly #metrics: Metrics;
  readonly #log: Log;
  readonly #size: FleetSize;
  readonly #polls: SubscriberPolls;
  readonly #archive = new SnapshotArchive();
  /** By index. */
  readonly #places: Place[] = [];
  /** Workers that let go of their streams because there is room without them. */
  readonly #retiring = new Set<WorkerProcess>();
  #port = 0;
  #ticks = 0;
  #ticker: NodeJS.Timeout | null = null;
  #isServing = false;
  #over = false;

  constructor(config: GatewayConfig, range: WorkerRange, metrics: Metrics, log: Log) {
    this.#config = config;
    this.#range = range;
    this.#metrics = metrics;
    this.#log = log;
    this.#size = new FleetSize(range, config.streaming.connectionsPerWorker);
    this.#polls = new SubscriberPolls(config.streaming.maxSubscribersPerStream, () => this.#answering());
  }

  async start(): Promise<{ readonly port: number }> {
    const { host, port } = this.#config;
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
    // Workers share the port with each other, and so would with a stranger's: who has it already is seen before.
    this.#port = await freePort(host, port);
    // One first: a broker that cannot be reached is told once.
    await this.#open(this.#config).started;
    const others = Array.from({ length: this.#range.min - 1 }, () => this.#open().started);
    await Promise.all(others);
    this.#isServing = true;
    return { port: this.#port };
  }

  async drain(seconds: number): Promise<void> {
    this.#stopFilling();
    // One that is about to come up has nothing to let go of, and would take all that the others do not take any more.
    await Promise.all(this.#all().map((worker) => (worker.isUp ? worker.drain(seconds) : worker.close())));
  }

  async close(): Promise<void> {
    this.#stopFilling();
    await Promise.all(this.#all().map((worker) => worker.close()));
  }

  async snapshots(): Promise<readonly ProcessSnapshot[]> {
    await Promise.all(this.#all().map((worker) => worker.refresh("all", SNAPSHOT_LIMIT_MS)));
    // In one moment: a worker that ended meanwhile is in the archive, and must not be counted twice.
    const gone = this.#archive.metrics();
    const theirs = this.#all().map(({ index, snapshot }) => ({ worker: index, metrics: snapshot }));
    this.#metrics.set("penstock_workers", this.#all().filter(({ serving, answers }) => serving && answers).length);
    const own = this.#metrics.snapshot();
    return [{ worker: null, metrics: await own }, { worker: null, metrics: await gone }, ...theirs];
  }

  health(): WorkerHealth {
    const workers = this.#all();
    const connections = workers.reduce((sum, { health }) => sum + health.connections, 0);
    const ready = workers.filter(({ serving, answers, health }) => serving && answers && health.ready);
    if (ready.length > 0)
      return { ready: true, detail: `${ready.length} of ${workers.length} workers: ${ready[0]!.health.detail}`, connections };
    const [first] = workers;
    return {
      ready: false,
      detail: first === undefined ? "no worker runs" : `no worker is ready: ${first.health.detail}`,
      connections,
    };
  }

  // --- from the workers --------------------------------------------------------------------------------------------------------

  exited(worker: WorkerProcess, how: string, expected: boolean): void {
    this.#archive.add(worker.snapshot);
    this.#retiring.delete(worker);
    const place = this.#places.find((candidate) => candidate.worker === worker);
    if (place !== undefined) place.worker = null;
    if (expected || this.#over || place?.hasServed !== true) return;
    this.#metrics.inc("penstock_worker_restarts_total");
    // Nobody else will say of its streams that they are over.
    this.#metrics.inc("penstock_connections_closed_total", "lost", openStreams(worker.snapshot));
    const waitMs = Math.round(place.backOff.ended(performance.now() - worker.startedAt));
    this.#log.error(
      { worker: worker.index, how, waitMs },
      "a worker ended; its clients come back to the others, and it is started again",
    );
    place.retry = setTimeout(() => {
      place.retry = null;
      this.#fill(place, worker.index);
    }, waitMs);
  }

  claimed(worker: WorkerProcess, id: number, runId: string): void {
    this.#polls.claim(runId, (granted) => worker.answerClaim(id, granted));
  }

  polled(id: number, count: number): void {
    this.#polls.answered(id, count);
  }

  // -----------------------------------------------------------------------------------------------------------------------------

  /** A worker in the first free place. `config` is another one only for the first of all. */
  #open(config?: GatewayConfig): WorkerProcess {
    if (this.#over) throw new Error("closed before all workers were started");
    let index = this.#places.findIndex(({ worker, retry }) => worker === null && retry === null);
    if (index < 0) index = this.#places.push({ backOff: new BackOff(), hasServed: false, worker: null, retry: null }) - 1;
    return this.#fill(this.#places[index]!, index, config);
  }

  /** Only the first worker of all asks whether the broker can be reached: a later one must come up in an outage, too. */
  #fill(place: Place, index: number, config: GatewayConfig = withoutProbe(this.#config)): WorkerProcess {
    const start = { config: { ...config, port: this.#port }, index, workers: this.#range.max };
    const worker = new WorkerProcess(start, this, this.#log);
    place.worker = worker;
    worker.started.then(
      () => {
        place.hasServed = true;
        this.#log.info({ worker: index, pid: worker.pid }, "a worker serves");
      },
      (error: Error) => {
        // The first start of all is told by whoever asked for it.
        if (!this.#over && this.#isServing) this.#log.error({ worker: index, error: error.message }, "a worker could not start");
      },
    );
    return worker;
  }

  #tick(): void {
    this.#ticks++;
    for (const worker of this.#all()) {
      if (++worker.silentSeconds < STUCK_SECONDS) continue;
      this.#log.error({ worker: worker.index, seconds: worker.silentSeconds }, "a worker has given no sign of life and is ended");
      worker.kill();
    }
    if (this.#ticks % SNAPSHOT_TICKS === 0) for (const worker of this.#all()) void worker.refresh("own", SNAPSHOT_LIMIT_MS);
    if (this.#ticks % SIZE_TICKS === 0) this.#resize();
  }

  #resize(): void {
    const serving = this.#all().filter((worker) => !this.#retiring.has(worker));
    // One that is on its way, stuck, or has failed and comes back, counts before another is thought of.
    if (serving.some(({ isUp, answers }) => !isUp || !answers) || this.#places.some(({ retry }) => retry !== null)) return;
    const connections = serving.reduce((sum, { health }) => sum + health.connections, 0);
    const step = this.#size.next(serving.length, connections, performance.now());
    if (step === "stay") return;
    this.#log.info(
      { workers: serving.length + (step === "grow" ? 1 : -1), connections },
      step === "grow" ? "one more worker" : "one worker less",
    );
    if (step === "grow") this.#open();
    else void this.#retire(serving.toSorted((a, b) => a.health.connections - b.health.connections)[0]!);
  }

  async #retire(worker: WorkerProcess): Promise<void> {
    this.#retiring.add(worker);
    await worker.drain(this.#config.drain.seconds);
    await worker.close();
  }

  #stopFilling(): void {
    this.#over = true;
    if (this.#ticker !== null) clearInterval(this.#ticker);
    for (const place of this.#places) if (place.retry !== null) clearTimeout(place.retry);
  }

  #all(): WorkerProcess[] {
    return this.#places.flatMap(({ worker }) => (worker === null ? [] : [worker]));
  }

  #answering(): WorkerProcess[] {
    return this.#all().filter(({ answers }) => answers);
  }
}

/** Streams that a process had opened and not closed, as far as it had told. */
function openStreams(snapshot: MetricsSnapshot): number {
  const sum = (name: string): number => {
    const metric = (snapshot as { name: string; values: { value: number }[] }[]).find((one) => one.name === name);
    return metric?.values.reduce((total, { value }) => total + value, 0) ?? 0;
  };
  return Math.max(0, sum("penstock_connections_opened_total") - sum("penstock_connections_closed_total"));
}

function withoutProbe(config: GatewayConfig): GatewayConfig {
  return { ...config, redis: { ...config.redis, pingOnStart: false } };
}
