/** One page of metrics out of those of several processes. */
import { AggregatorRegistry, type PrometheusContentType } from "prom-client";
import type { MetricsSnapshot } from "./metrics.ts";

/** `Content-Type` of the page: Prometheus' text format 0.0.4. */
export const METRICS_CONTENT_TYPE = AggregatorRegistry.PROMETHEUS_CONTENT_TYPE;

/** Counters, gauges and histogram buckets are summed; what has another way of its own (loop lag: the mean or the largest) keeps it. */
export async function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  const kept = snapshots.map((snapshot) => snapshot.map(keepStartTime));
  return AggregatorRegistry.aggregate<PrometheusContentType>(kept as unknown as object[]).metrics();
}

/** prom-client leaves out what it cannot add, such as the start time; the oldest process' says how long the gateway has been up. */
function keepStartTime(metric: object): object {
  return (metric as { aggregator?: string }).aggregator === "omit" ? { ...metric, aggregator: "min" } : metric;
}
