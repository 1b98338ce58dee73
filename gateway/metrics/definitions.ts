/** Every metric of the gateway, once. Label values are listed, so that each series exists from the start at 0 (docs/metrics.md is made from this). */
import { GAP_REASONS } from "../../protocol/wire.ts";
import { SIGNALS, STEPS } from "../overload/ladder.ts";
import { CLOSE_REASONS } from "../stream/sink.ts";

export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** At most one label, with all its values. */
  readonly label?: { readonly name: string; readonly values: readonly string[] };
  readonly buckets?: readonly number[];
  /**
   * What becomes of a gauge of several workers: their sum, their largest, or a series for each with the label `worker`. Default: the sum.
   * Counters and histograms are added up.
   */
  readonly merged?: "max" | "each";
}

/** A gateway that drains refuses none: it serves, and ends what it serves soon. */
const REJECT_REASONS = ["capacity", "overload", "subscribers", "unauthorized", "bad_request", "not_acceptable"] as const;

const LAG_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const METRICS = {
  penstock_connections: { type: "gauge", help: "Event streams open now." },
  penstock_worker_connections: { type: "gauge", help: "Event streams open now, by worker.", merged: "each" },
  penstock_connections_opened_total: { type: "counter", help: "Event streams opened." },
  penstock_connections_closed_total: {
    type: "counter",
    help: "Event streams closed, by reason.",
    label: { name: "reason", values: CLOSE_REASONS },
  },
  penstock_connections_rejected_total: {
    type: "counter",
    help: "Event streams refused, by reason.",
    label: { name: "reason", values: REJECT_REASONS },
  },
  penstock_connection_duration_seconds: {
    type: "histogram",
    help: "How long event streams lived.",
    buckets: [1, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 7200, 21600, 86400],
  },
  penstock_runs: { type: "gauge", help: "Runs with a ring and a reader; one that several workers watch counts for each." },
  penstock_ring_bytes: { type: "gauge", help: "Bytes of encoded frames held in rings." },
  penstock_events_published_total: { type: "counter", help: "Events stored for producers." },
  penstock_publishes_total: {
    type: "counter",
    help: "Publish requests, by the class of their answer.",
    label: { name: "result", values: ["ok", "refused", "unavailable"] },
  },
  penstock_deliveries_total: { type: "counter", help: "Events written to subscribers." },
  penstock_delivered_bytes_total: { type: "counter", help: "Bytes of frames written to subscribers." },
  penstock_heartbeats_total: { type: "counter", help: "Heartbeats written." },
  penstock_gaps_total: {
    type: "counter",
    help: "Gap frames written, by reason.",
    label: { name: "reason", values: GAP_REASONS },
  },
  penstock_gap_events_missed_total: {
    type: "counter",
    help: "Events that gap frames said were missing, where their number was known.",
  },
  penstock_resumes_total: {
    type: "counter",
    help: "Streams opened with a position, by where they were continued from.",
    label: { name: "result", values: ["ring", "history", "gap"] },
  },
  penstock_replayed_events_total: { type: "counter", help: "Events delivered out of history pages instead of the ring." },
  penstock_backpressure_total: { type: "counter", help: "Times that a subscriber's socket was full." },
  penstock_unknown_entries_total: {
    type: "counter",
    help: "Entries of the broker that could not be read as an event, and were passed over.",
  },
  penstock_duplicate_entries_total: {
    type: "counter",
    help: "Entries dropped because a timed-out publish had stored them twice.",
  },
  penstock_delivery_lag_seconds: {
    type: "histogram",
    help: "From the time in an entry's id to its write, sampled once a flush.",
    buckets: LAG_BUCKETS,
  },
  penstock_redis_connected: {
    type: "gauge",
    help: "Connections to Redis that are up, by role.",
    label: { name: "role", values: ["command", "read", "wake"] },
  },
  penstock_redis_reconnects_total: {
    type: "counter",
    help: "Connections to Redis made again.",
    label: { name: "role", values: ["command", "read", "wake"] },
  },
  penstock_redis_errors_total: {
    type: "counter",
    help: "Failures of Redis, by kind.",
    label: { name: "type", values: ["connection", "timeout", "reply", "moved"] },
  },
  penstock_redis_reads_total: { type: "counter", help: "Read commands sent to Redis." },
  penstock_redis_read_mode: {
    type: "gauge",
    help: "1 for the way in which runs are read now.",
    label: { name: "mode", values: ["tracking", "blocking", "polling"] },
  },
  penstock_overload_level: {
    type: "gauge",
    help: `Highest step that is taken against overload, by worker: 0 none, ${STEPS.map((step, index) => `${index + 1} ${step}`).join(", ")}.`,
    merged: "each",
  },
  penstock_overload_steps_total: {
    type: "counter",
    help: "Steps taken against overload.",
    label: { name: "step", values: STEPS },
  },
  penstock_overload_pressure: {
    type: "gauge",
    help: "How much is used of the memory, of the lag that the event loop may have, and of the connections, by worker: 1 is all.",
    label: { name: "signal", values: SIGNALS },
    merged: "each",
  },
  penstock_draining: { type: "gauge", help: "1 while the gateway lets go of its streams.", merged: "max" },
  penstock_workers: { type: "gauge", help: "Workers that serve and answer." },
  penstock_worker_restarts_total: {
    type: "counter",
    help: "Workers that ended by themselves, or were ended because they were stuck.",
  },
  penstock_claims_unanswered_total: {
    type: "counter",
    help: "Readers that were taken without asking the other workers, because the supervisor did not answer in time.",
  },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;
