/** How busy this process is itself: above a limit, it is what is being measured. */
import { type EventLoopUtilization, performance } from "node:perf_hooks";

/** Share of the time; above it events wait here, not in the gateway. */
const SATURATED = 0.9;
/** A shorter time says nothing: the first of everything is slow. */
const SHORTEST_MS = 500;

export class LoaderMeter {
  readonly #start: EventLoopUtilization = performance.eventLoopUtilization();
  readonly #cpu = process.cpuUsage();
  readonly #began = performance.now();

  /** Since it was made. */
  read(): LoaderUse {
    const { utilization } = performance.eventLoopUtilization(this.#start);
    const { user, system } = process.cpuUsage(this.#cpu);
    const lastedMs = performance.now() - this.#began;
    return {
      utilisation: utilization,
      cpuShare: (user + system) / 1_000 / lastedMs,
      isSaturated: utilization > SATURATED && lastedMs > SHORTEST_MS,
    };
  }
}

export interface LoaderUse {
  /** Share of the time in which this process had something to do, 0 to 1; waiting for a core counts. */
  readonly utilisation: number;
  /** Share of the time in which it had a core; above 1 with several threads. */
  readonly cpuShare: number;
  readonly isSaturated: boolean;
}
