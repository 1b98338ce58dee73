import { describe, expect, it } from "vitest";
import { METRICS, type MetricDefinition } from "./definitions.ts";
import { mergeSnapshots } from "./merge.ts";
import { createMetrics } from "./metrics.ts";
import { SnapshotArchive } from "./snapshot-archive.ts";

/** Samples of a page by `name` or `name{label="value"}`. */
async function samplesOf(...snapshots: object[][]): Promise<Map<string, number>> {
  const page = await mergeSnapshots(snapshots.map((metrics, worker) => ({ worker, metrics })));
  const lines = page.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}

describe("a process' metrics", () => {
  it("every series exists from the start, at 0", async () => {
    const samples = await samplesOf(await createMetrics({ processMetrics: false }).snapshot());
    for (const [name, definition] of Object.entries<MetricDefinition>(METRICS)) {
      const labels = definition.label?.values.map((value) => `${definition.label?.name}="${value}"`) ?? [];
      const each = definition.merged === "each" ? ['worker="0"'] : [];
      const sets = labels.length > 0 ? labels.map((label) => [label, ...each]) : [each];
      const series =
        definition.type === "histogram"
          ? [`${name}_count`, `${name}_bucket{le="+Inf"}`]
          : sets.map((set) => (set.length === 0 ? name : `${name}{${set.join(",")}}`));
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
    for (const name of [
      "nodejs_heap_size_used_bytes",
      'nodejs_eventloop_lag_p99_seconds{worker="0"}',
      "process_resident_memory_bytes",
    ]) {
      expect(samples.has(name), name).toBe(true);
    }
    expect(samples.get("process_start_time_seconds")).toBeGreaterThan(1_600_000_000);
  });
});

describe("the event loop's lag", () => {
  it("is a number, also where two scrapes come in one moment", async () => {
    const metrics = createMetrics();
    await metrics.snapshot();
    const samples = await samplesOf(await metrics.snapshot());
    for (const [name, value] of samples) if (name.startsWith("nodejs_eventloop_lag_m")) expect(value, name).toBeLessThan(60);
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
    // Snapshots cross process borders as copies.
    const overIpc = structuredClone([await one.snapshot(), await two.snapshot()]);
    const samples = await samplesOf(...overIpc);
    expect(samples.get('penstock_gaps_total{reason="outage"}')).toBe(3);
    expect(samples.get("penstock_connections")).toBe(30);
    expect(samples.get('penstock_delivery_lag_seconds_bucket{le="1"}')).toBe(1);
    expect(samples.get("penstock_delivery_lag_seconds_count")).toBe(2);
    expect(samples.get("penstock_delivery_lag_seconds_sum")).toBeCloseTo(3.002);
    expect(samples.get("penstock_draining")).toBe(1);
  });

  it("have a series for each worker where a sum would lie", async () => {
    const [one, two] = [createMetrics(), createMetrics()];
    one.set("penstock_worker_connections", 10);
    two.set("penstock_worker_connections", 20);
    const samples = await samplesOf(await one.snapshot(), await two.snapshot());
    expect(samples.get('penstock_worker_connections{worker="0"}')).toBe(10);
    expect(samples.get('penstock_worker_connections{worker="1"}')).toBe(20);
    expect(samples.has("penstock_worker_connections")).toBe(false);
    expect(samples.has('nodejs_eventloop_lag_p99_seconds{worker="1"}')).toBe(true);
  });

  it("keep what a process had counted that is gone, and nothing of how things stood with it", async () => {
    const archive = new SnapshotArchive();
    const metrics = createMetrics({ processMetrics: false });
    metrics.inc("penstock_deliveries_total", undefined, 5);
    metrics.inc("penstock_gaps_total", "outage", 2);
    metrics.observe("penstock_delivery_lag_seconds", 3);
    metrics.set("penstock_connections", 7);
    archive.add(await metrics.snapshot());
    archive.add(await metrics.snapshot());
    const alive = createMetrics({ processMetrics: false });
    alive.inc("penstock_deliveries_total", undefined, 1);
    alive.set("penstock_connections", 1);
    const samples = await samplesOf(await archive.metrics(), await alive.snapshot());
    expect(samples.get("penstock_deliveries_total")).toBe(11);
    expect(samples.get('penstock_gaps_total{reason="outage"}')).toBe(4);
    expect(samples.get('penstock_delivery_lag_seconds_bucket{le="5"}')).toBe(2);
    expect(samples.get("penstock_connections")).toBe(1);
  });
});
