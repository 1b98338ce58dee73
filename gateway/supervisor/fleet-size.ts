/** How many workers there are to be: by cores and memory at the start, by connections while it runs. Pure. */

/** A worker without a reader takes about 70 MiB; with less than this for each, overload is near from the start. */
const LEAST_WORKER_BYTES = 256 * 2 ** 20;
/** So long must there be room in fewer workers before one goes: who went may be about to come back. */
const RETIRE_AFTER_MS = 60_000;

export interface WorkerRange {
  readonly min: number;
  readonly max: number;
}

/** A setting as it is written; `auto` is what cores and memory allow. */
export interface WantedRange {
  readonly min: number | "auto";
  readonly max: number | "auto";
}

export interface Machine {
  /** Cores that this process may use, fractions of a control group's quota included. */
  readonly cores: number;
  readonly memoryBytes: number;
}

export function workerRange(wanted: WantedRange, { cores, memoryBytes }: Machine): WorkerRange {
  const affordable = Math.max(1, Math.min(Math.ceil(cores), Math.floor(memoryBytes / LEAST_WORKER_BYTES)));
  const max = wanted.max === "auto" ? Math.max(affordable, wanted.min === "auto" ? 1 : wanted.min) : wanted.max;
  const min = wanted.min === "auto" ? Math.min(affordable, max) : wanted.min;
  return { min, max };
}

export class FleetSize {
  readonly #range: WorkerRange;
  readonly #aim: number;
  #roomySince: number | null = null;

  /** `connectionsPerWorker` is what the workers are to hold on average. */
  constructor(range: WorkerRange, connectionsPerWorker: number) {
    this.#range = range;
    this.#aim = connectionsPerWorker;
  }

  /**
   * What to do with `workers` that hold so many `connections` together. Grows when the average is above the aim; shrinks when one worker
   * less would be half full at most, and that for a minute.
   */
  next(workers: number, connections: number, now: number): "grow" | "retire" | "stay" {
    if (workers < this.#range.max && connections > workers * this.#aim) {
      this.#roomySince = null;
      return "grow";
    }
    if (workers <= this.#range.min || connections > ((workers - 1) * this.#aim) / 2) {
      this.#roomySince = null;
      return "stay";
    }
    this.#roomySince ??= now;
    if (now - this.#roomySince < RETIRE_AFTER_MS) return "stay";
    this.#roomySince = null;
    return "retire";
  }
}
