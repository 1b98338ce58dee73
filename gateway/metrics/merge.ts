/** One page of metrics out of those of several processes. */
import { AggregatorRegistry, type PrometheusContentType } from "prom-client";
import type { ProcessSnapshot } from "../supervisor/worker-handle.ts";
import { METRICS, type MetricDefinition } from "./definitions.ts";

/** `Content-Type` of the page: Prometheus' text format 0.0.4. */
export const METRICS_CONTENT_TYPE = AggregatorRegistry.PROMETHEUS_CONTENT_TYPE;

/**
 * Counters, histogram buckets and most gauges are summed. A gauge of which neither sum nor mean says anything gets a series for each
 * worker, with the label `worker`.
 */
export async function mergeSnapshots(snapshots: readonly ProcessSnapshot[]): Promise<string> {
  const merged = snapshots.map(({ worker, metrics }) => metrics.flatMap((metric) => prepare(metric as JsonMetric, worker)));
  return AggregatorRegistry.aggregate<PrometheusContentType>(merged as unknown as object[]).metrics();
}

/** A metric as prom-client's `getMetricsAsJSON` has it. */
interface JsonMetric {
  readonly name: string;
  readonly aggregator?: string;
  readonly values: readonly { readonly labels: object }[];
}

const EACH: ReadonlySet<string> = new Set(
  Object.entries<MetricDefinition>(METRICS).flatMap(([name, { merged }]) => (merged === "each" ? [name] : [])),
);
/** Of Node's own: a loop that lags is lost in a mean. */
const EACH_OF_NODE = /^nodejs_eventloop_lag_/;

function prepare(metric: JsonMetric, worker: number | null): object[] {
  if (EACH.has(metric.name) || EACH_OF_NODE.test(metric.name)) {
    // The supervisor's loop serves nobody.
    if (worker === null) return [];
    const values = metric.values.map((value) => ({ ...value, labels: { ...value.labels, worker: String(worker) } }));
    return [{ ...metric, aggregator: "sum", values }];
  }
  if (metric.name === "process_max_fds") return [{ ...metric, aggregator: "min" }];
  // prom-client leaves out what it cannot add, such as the start time; the oldest process' says how long the gateway has been up.
  return [metric.aggregator === "omit" ? { ...metric, aggregator: "min" } : metric];
}
