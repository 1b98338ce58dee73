import type { Metrics } from "../metrics/metrics.ts";
import type { ConnectionCounters } from "./run-table.ts";

/** What the heart counts, as metrics. */
export function streamCounters(metrics: Metrics): ConnectionCounters {
  return {
    delivered(events, bytes) {
      metrics.inc("penstock_deliveries_total", undefined, events);
      metrics.inc("penstock_delivered_bytes_total", undefined, bytes);
    },
    replayed: (events) => metrics.inc("penstock_replayed_events_total", undefined, events),
    heartbeat: () => metrics.inc("penstock_heartbeats_total"),
    gap(reason, missed) {
      metrics.inc("penstock_gaps_total", reason);
      if (missed !== null) metrics.inc("penstock_gap_events_missed_total", undefined, missed);
    },
    resumed: (result) => metrics.inc("penstock_resumes_total", result),
    backpressure: () => metrics.inc("penstock_backpressure_total"),
    unknownEntry: () => metrics.inc("penstock_unknown_entries_total"),
    lag: (milliseconds) => metrics.observe("penstock_delivery_lag_seconds", Math.max(0, milliseconds) / 1000),
    opened: () => metrics.inc("penstock_connections_opened_total"),
    closed(reason, milliseconds) {
      metrics.inc("penstock_connections_closed_total", reason);
      metrics.observe("penstock_connection_duration_seconds", milliseconds / 1000);
    },
    rejected: (reason) => metrics.inc("penstock_connections_rejected_total", reason),
  };
}
