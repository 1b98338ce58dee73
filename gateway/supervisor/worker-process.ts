/** A worker's process, as the supervisor holds it: started, spoken to, watched, ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { BrokerStartError, ConfigError, PenstockError } from "../errors.ts";
import type { MetricsSnapshot, SnapshotPart } from "../metrics/metrics.ts";
import { VERSION } from "../version.ts";
import { Channel } from "./channel.ts";
import { type FromWorker, IPC_VERSION, type StartFailure, type ToWorker, type WorkerStart } from "./messages.ts";
import { YOUNG_GENERATION_FLAG } from "./v8-flags.ts";
import type { Log, WorkerHealth } from "./worker-handle.ts";

const ENTRY = fileURLToPath(new URL("../worker/worker-process.ts", import.meta.url));
/** Kills a process when its parent dies, whatever it is doing: util-linux, on every Debian. Without it a worker leaves when it looks up. */
const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

/** Seconds without a sign of life after which nothing is waited for, and after which the process is ended. */
export const SILENT_SECONDS = 3;
export const STUCK_SECONDS = 30;
const CLOSE_MS = 2_000;

export interface WorkerEvents {
  /** The process is gone. `expected` when it was told to go. */
  exited(worker: WorkerProcess, how: string, expected: boolean): void;
  claimed(worker: WorkerProcess, id: number, runId: string): void;
  polled(id: number, count: number): void;
}

export class WorkerProcess {
  readonly index: number;
  readonly startedAt = performance.now();
  health: WorkerHealth = { ready: false, detail: "starting", connections: 0 };
  /** True from the line that it serves to its end. */
  isUp = false;
  /** Seconds since the last sign of life, as this process counted them: a time that both slept through is not in it. */
  silentSeconds = 0;
  readonly #child: ChildProcess;
  readonly #channel: Channel<ToWorker, FromWorker>;
  readonly #start: WorkerStart;
  readonly #events: WorkerEvents;
  readonly #log: Log;
  readonly #started = Promise.withResolvers<number>();
  /** Newest of what it measured, by name. */
  readonly #measured = new Map<string, object>();
  readonly #exit = Promise.withResolvers<void>();
  #snapshotWaiters: (() => void)[] = [];
  #drained: (() => void) | null = null;
  #told = false;
  #isGone = false;

  /** `entry` is the program of the process; another one than ours is for tests. */
  constructor(start: WorkerStart, events: WorkerEvents, log: Log, entry: string = ENTRY) {
    this.index = start.index;
    this.#start = start;
    this.#events = events;
    this.#log = log;
    // Whoever waits hears of it; where nobody does, the exit is enough.
    this.#started.promise.catch(() => {});
    const node = [process.execPath, YOUNG_GENERATION_FLAG, entry];
    const [command, ...args] = SETPRIV === undefined ? node : [SETPRIV, "--pdeathsig", "KILL", ...node];
    this.#child = spawn(command!, args, { stdio: ["ignore", "inherit", "inherit", "ipc"], serialization: "advanced" });
    this.#channel = new Channel<ToWorker, FromWorker>(this.#child, (message) => this.#received(message));
    this.#child.once("error", (error) => this.#gone(`it could not be started: ${error.message}`));
    // Not `exit`: what it said last may still be on its way then.
    this.#child.once("close", (code, signal) => this.#gone(signal === null ? `exit code ${code}` : `signal ${signal}`));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** False from the order to let go on. */
  get serving(): boolean {
    return this.isUp && !this.#told;
  }

  /** False while nothing can be expected of it. */
  get answers(): boolean {
    return this.isUp && this.silentSeconds < SILENT_SECONDS;
  }

  /** Resolves with the port, when it serves. Throws what its start threw. */
  get started(): Promise<number> {
    return this.#started.promise;
  }

  poll(id: number, runId: string): boolean {
    return this.#channel.send({ type: "poll", id, runId });
  }

  answerClaim(id: number, granted: boolean): void {
    this.#channel.send({ type: "claimed", id, granted });
  }

  /** What it measured, as far as is known here. */
  get snapshot(): MetricsSnapshot {
    return [...this.#measured.values()];
  }

  /** Resolves when `snapshot` is new, or after `limitMs`. */
  refresh(part: SnapshotPart, limitMs: number): Promise<void> {
    if (!this.answers || !this.#channel.send({ type: "snapshot", part })) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(limit);
        resolve();
      };
      const limit = setTimeout(resolve, limitMs);
      this.#snapshotWaiters.push(done);
    });
  }

  /** Resolves when it has let go of all its streams, or is gone; at once where it is stuck; at the latest some seconds after `seconds`. */
  async drain(seconds: number): Promise<void> {
    this.#told = true;
    const drained = new Promise<void>((resolve) => (this.#drained = resolve));
    if (!this.#channel.send({ type: "drain", seconds }) || !this.answers) return;
    await withLimit(Promise.race([drained, this.#exit.promise]), seconds * 1_000 + CLOSE_MS);
  }

  /** Ends it, by force when it does not go by itself. */
  async close(): Promise<void> {
    this.#told = true;
    this.#channel.send({ type: "close" });
    await withLimit(this.#exit.promise, CLOSE_MS);
    this.kill();
    await this.#exit.promise;
  }

  /** Ends it as one that failed: its place is filled again. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #received(message: FromWorker): void {
    this.silentSeconds = 0;
    switch (message.type) {
      case "hello":
        this.#greet(message.version, message.program);
        break;
      case "started":
        this.isUp = true;
        this.#started.resolve(message.port);
        break;
      case "failed":
        this.#started.reject(errorOf(message.error));
        this.kill();
        break;
      case "health":
        this.health = message.health;
        break;
      case "snapshot":
        for (const metric of message.snapshot) this.#measured.set((metric as { name: string }).name, metric);
        this.#snapshotWaiters.shift()?.();
        break;
      case "drained":
        this.#drained?.();
        break;
      case "polled":
        this.#events.polled(message.id, message.count);
        break;
      case "claim":
        this.#events.claimed(this, message.id, message.runId);
    }
  }

  #greet(version: number, program: string): void {
    if (version === IPC_VERSION && program === VERSION) {
      this.#channel.send({ type: "start", start: this.#start });
      return;
    }
    this.#log.error(
      { supervisor: VERSION, worker: program },
      "the program on disk is another one than this process; restart the gateway",
    );
    this.#started.reject(new Error("a worker of another version"));
    this.kill();
  }

  #gone(how: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.isUp = false;
    this.health = { ready: false, detail: "gone", connections: 0 };
    this.#started.reject(new Error(`a worker ended before it served: ${how}`));
    this.#exit.resolve();
    for (const waiter of this.#snapshotWaiters.splice(0)) waiter();
    this.#events.exited(this, how, this.#told);
  }
}

async function withLimit(promise: Promise<unknown>, limitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  await Promise.race([promise, limit]);
  clearTimeout(timer);
}

/** The error that a person can mend is the same on this side of the channel. */
function errorOf({ name, code, message }: StartFailure): Error {
  if (name === ConfigError.name) return new ConfigError(message);
  if (name === BrokerStartError.name) return new BrokerStartError(message.replace(/^Stream broker startup probe failed: /, ""));
  return code === null ? new Error(message) : new PenstockError(code, message);
}
