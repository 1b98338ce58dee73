import { describe, expect, it } from "vitest";
import { METRICS, type MetricDefinition } from "./definitions.ts";
import { mergeSnapshots } from "./merge.ts";
import { createMetrics } from "./metrics.ts";

/** Samples of a page by `name` or `name{label="value"}`. */
async function samplesOf(...snapshots: object[][]): Promise<Map<string, number>> {
  const page = await mergeSnapshots(snapshots);
  const lines = page.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}

describe("a process' metrics", () => {
  it("every series exists from the start, at 0", async () => {
    const samples = await samplesOf(await createMetrics({ processMetrics: false }).snapshot());
    for (const [name, definition] of Object.entries<MetricDefinition>(METRICS)) {
      const series =
        definition.type === "histogram"
          ? [`${name}_count`, `${name}_bucket{le="+Inf"}`]
          : (definition.label?.values.map((value) => `${name}{${definition.label?.name}="${value}"}`) ?? [name]);
      for (const one of series) expect(samples.get(one), one).toBe(0);
    }
  });

  it("show what was counted, again and again", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.inc("penstock_deliveries_total");
    metrics.inc("penstock_deliveries_total", undefined, 41);
    metrics.inc("penstock_gaps_total", "retention", 2);
    metrics.inc("penstock_connections", undefined, 3);
    metrics.inc("penstock_connections", undefined, -1);
    metrics.set("penstock_redis_connected", 1, "read");
    metrics.observe("penstock_delivery_lag_seconds", 0.02);
    for (const _ of [1, 2]) {
      const samples = await samplesOf(await metrics.snapshot());
      expect(samples.get("penstock_deliveries_total")).toBe(42);
      expect(samples.get('penstock_gaps_total{reason="retention"}')).toBe(2);
      expect(samples.get('penstock_gaps_total{reason="overflow"}')).toBe(0);
      expect(samples.get("penstock_connections")).toBe(2);
      expect(samples.get('penstock_redis_connected{role="read"}')).toBe(1);
      expect(samples.get('penstock_delivery_lag_seconds_bucket{le="0.025"}')).toBe(1);
      expect(samples.get('penstock_delivery_lag_seconds_bucket{le="0.01"}')).toBe(0);
    }
    expect(metrics.value("penstock_deliveries_total")).toBe(42);
    expect(metrics.value("penstock_gaps_total", "retention")).toBe(2);
  });

  it("tell the heap, the event loop's lag and since when the process runs", async () => {
    const samples = await samplesOf(await createMetrics().snapshot());
    for (const name of ["nodejs_heap_size_used_bytes", "nodejs_eventloop_lag_p99_seconds", "process_resident_memory_bytes"]) {
      expect(samples.has(name), name).toBe(true);
    }
    expect(samples.get("process_start_time_seconds")).toBeGreaterThan(1_600_000_000);
  });
});

describe("metrics of several processes", () => {
  it("are summed: counters, gauges and buckets; draining is a state and not a number", async () => {
    const [one, two] = [createMetrics({ processMetrics: false }), createMetrics({ processMetrics: false })];
    one.inc("penstock_gaps_total", "outage", 1);
    two.inc("penstock_gaps_total", "outage", 2);
    one.set("penstock_connections", 10);
    two.set("penstock_connections", 20);
    one.observe("penstock_delivery_lag_seconds", 0.002);
    two.observe("penstock_delivery_lag_seconds", 3);
    for (const metrics of [one, two]) metrics.set("penstock_draining", 1);
    // Snapshots cross process borders as JSON.
    const overIpc = JSON.parse(JSON.stringify([await one.snapshot(), await two.snapshot()])) as object[][];
    const samples = await samplesOf(...overIpc);
    expect(samples.get('penstock_gaps_total{reason="outage"}')).toBe(3);
    expect(samples.get("penstock_connections")).toBe(30);
    expect(samples.get('penstock_delivery_lag_seconds_bucket{le="1"}')).toBe(1);
    expect(samples.get("penstock_delivery_lag_seconds_count")).toBe(2);
    expect(samples.get("penstock_delivery_lag_seconds_sum")).toBeCloseTo(3.002);
    expect(samples.get("penstock_draining")).toBe(1);
  });
});
