/** Measures what the ladder goes by. */
import type { Pressure, Signal } from "./ladder.ts";
import { LoopLag } from "./loop-lag.ts";
import { type MemoryOptions, MemoryPressure, type MemoryUse } from "./memory-pressure.ts";

export interface ProbeOptions {
  /** What all workers together may keep resident; null: the control group's limit, or the machine's memory. */
  readonly memoryLimitBytes: number | null;
  readonly workers: number;
  readonly maxLoopLagMs: number;
  /** Connections of any kind that this worker can hold. */
  readonly maxConnections: number;
  readonly connections: MemoryOptions["connections"];
  /** Open streams whose socket is full. */
  readonly blocked: MemoryOptions["blocked"];
}

export interface PressureProbe {
  /** `lateMs`: by how much the timer of this look is late; `sinceMs`: how long ago the last one was. */
  read(lateMs: number, sinceMs: number): Pressure;
  /** For a person: what the last look found of a signal. */
  describe(signal: Signal): string;
}

export class Probe implements PressureProbe {
  readonly #options: ProbeOptions;
  readonly #memory: MemoryPressure;
  readonly #lag: LoopLag;
  #use: MemoryUse = { usedBytes: 0, limitBytes: 1 };
  #connections = 0;

  constructor(options: ProbeOptions) {
    const { memoryLimitBytes, workers, maxLoopLagMs, connections, blocked } = options;
    this.#options = options;
    this.#memory = new MemoryPressure({ limitBytes: memoryLimitBytes, workers, connections, blocked });
    this.#lag = new LoopLag(maxLoopLagMs * WORST_LAG);
  }

  read(lateMs: number, sinceMs: number): Pressure {
    const { maxLoopLagMs, maxConnections, connections } = this.#options;
    this.#lag.sample(lateMs, sinceMs);
    this.#use = this.#memory.read();
    this.#connections = connections();
    return {
      memory: this.#use.usedBytes / this.#use.limitBytes,
      loop_lag: this.#lag.milliseconds / maxLoopLagMs,
      connections: this.#connections / maxConnections,
    };
  }

  describe(signal: Signal): string {
    const { maxLoopLagMs, maxConnections } = this.#options;
    if (signal === "loop_lag")
      return `the event loop is ${Math.round(this.#lag.milliseconds)} ms late, and ${maxLoopLagMs} ms are much`;
    if (signal === "connections") return `${this.#connections} of ${maxConnections} connections are open`;
    const { usedBytes, limitBytes } = this.#use;
    return `${Math.round((100 * usedBytes) / limitBytes)} % of ${Math.round(limitBytes / MIB)} MiB of memory is used`;
  }
}

/** Beyond the last threshold of the ladder there is nothing to know, and from there the way down is short. */
const WORST_LAG = 4;
const MIB = 2 ** 20;
