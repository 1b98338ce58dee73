/** Workers as the supervisor sees them: one in its own process, or a fleet of processes, the same five calls. */
import type { BrokerLog } from "../broker/broker.ts";
import type { MetricsSnapshot } from "../metrics/metrics.ts";

export interface WorkerHealth {
  /** False when the worker can neither read nor wait, or is not serving: readiness falls. Liveness never asks. */
  readonly ready: boolean;
  /** One line for a person, without secrets. */
  readonly detail: string;
  /** Event streams open now. */
  readonly connections: number;
}

/** What one process measured. */
export interface ProcessSnapshot {
  /** The worker's place among the workers, from 0; null for the supervisor's own process where it holds no worker. */
  readonly worker: number | null;
  readonly metrics: MetricsSnapshot;
}

export interface WorkerHandle {
  /** Connects the broker and listens. Throws BrokerStartError, ListenError or ConfigError. `port` is the one that was bound. */
  start(): Promise<{ readonly port: number }>;
  /**
   * Stops listening and lets go of every stream, in slices, within `seconds`; what is left then is cut with `gap: shutdown`.
   * The pause before it (`drain.delaySeconds`) is the supervisor's.
   */
  drain(seconds: number): Promise<void>;
  /** Of each process, those that are gone included; within 2 s, whatever a process does. */
  snapshots(): Promise<readonly ProcessSnapshot[]>;
  health(): WorkerHealth;
  /** Ends whatever is left at once and closes the broker. */
  close(): Promise<void>;
}

/** One JSON line an occurrence; no payloads, no tokens. A pino logger fits. */
export interface Log extends BrokerLog {
  debug(fields: object, message: string): void;
}
