/** What supervisor and workers say to each other over the IPC channel of a worker's process. Nothing of it is on an event's way. */
import type { GatewayConfig } from "../config.ts";
import type { MetricsSnapshot, SnapshotPart } from "../metrics/metrics.ts";
import type { WorkerHealth } from "./worker-handle.ts";

/** Raised with every change of these messages: a program that was replaced on disk while it runs must not speak with its new workers. */
export const IPC_VERSION = 1;

export type ToWorker =
  | { readonly type: "start"; readonly start: WorkerStart }
  | { readonly type: "drain"; readonly seconds: number }
  | { readonly type: "close" }
  /** `own`: without what Node.js says of the process, which costs it more. */
  | { readonly type: "snapshot"; readonly part: SnapshotPart }
  /** How many readers does this run have with you? From now on its places are asked for. */
  | { readonly type: "poll"; readonly id: number; readonly runId: string }
  | { readonly type: "claimed"; readonly id: number; readonly granted: boolean };

export type FromWorker =
  /** The first message, at once: which language the worker speaks. */
  | { readonly type: "hello"; readonly version: number; readonly program: string }
  | { readonly type: "started"; readonly port: number }
  | { readonly type: "failed"; readonly error: StartFailure }
  /** Every second: a sign of life. */
  | { readonly type: "health"; readonly health: WorkerHealth }
  | { readonly type: "snapshot"; readonly snapshot: MetricsSnapshot }
  | { readonly type: "drained" }
  | { readonly type: "polled"; readonly id: number; readonly count: number }
  /** May a reader of this run be taken? Asked only where the run may be near its limit. */
  | { readonly type: "claim"; readonly id: number; readonly runId: string };

export interface WorkerStart {
  readonly config: GatewayConfig;
  /** The worker's place among the workers, from 0: a label of its metrics, a field of its log lines. */
  readonly index: number;
  /** Most workers that there will be: what a process' share of the pod is. */
  readonly workers: number;
}

/** An error that ends a start, as it crosses the channel. */
export interface StartFailure {
  readonly name: string;
  readonly code: string | null;
  readonly message: string;
}
