/** What the gateway says of itself: CPU time, memory, connections, from its `/metrics`. */
import { connectionFailure } from "../cli/client/retry.ts";

export interface Sample {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly connections: number;
  readonly connectionsOpened: number;
  /** Times that a reader's socket was full. */
  readonly backpressure: number;
}

const ANSWER_LIMIT_MS = 5_000;
/** Prometheus itself listens on 9090 by default, and has process_ metrics too. */
const OURS = "penstock_connections_opened_total";

export class GatewayMetrics {
  readonly #url: string;
  /** Why there are no numbers; null as long as there are. */
  problem: string | null = null;

  /** `adminUrl`: address of the admin port. */
  constructor(adminUrl: string) {
    this.#url = `${adminUrl.replace(/\/+$/, "")}/metrics`;
  }

  /** Null where it cannot be had; `problem` says why. */
  async sample(): Promise<Sample | null> {
    if (this.problem !== null) return null;
    try {
      const response = await fetch(this.#url, { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) });
      const text = await response.text();
      if (response.status !== 200 || !text.includes(OURS)) this.problem = `${this.#url} has no metrics of Penstock`;
      else return readSample(text);
    } catch (error) {
      this.problem = `${this.#url} does not answer (${connectionFailure(error)})`;
    }
    return null;
  }
}

function readSample(text: string): Sample {
  const sums = new Map<string, number>();
  for (const line of text.split("\n")) {
    const name = /^[A-Za-z_:][\w:]*/.exec(line)?.[0];
    // Series of several processes add up.
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(line.slice(line.lastIndexOf(" ") + 1)));
  }
  const of = (name: string): number => sums.get(name) ?? Number.NaN;
  return {
    cpuSeconds: of("process_cpu_seconds_total"),
    residentBytes: of("process_resident_memory_bytes"),
    connections: of("penstock_connections"),
    connectionsOpened: of(OURS),
    backpressure: of("penstock_backpressure_total"),
  };
}
