/** What processes that are gone had counted: without it the sums would fall when a worker ends. */
import { AggregatorRegistry } from "prom-client";
import type { MetricsSnapshot } from "./metrics.ts";

export class SnapshotArchive {
  #kept: MetricsSnapshot = [];
  #added: Promise<void> = Promise.resolve();

  /** Adds the last snapshot of a process; what only says how things were then (gauges) is dropped. */
  add(snapshot: MetricsSnapshot): void {
    const counts = snapshot.filter((metric) => isCount(metric as { type?: string }));
    this.#added = this.#added.then(async () => {
      const sum = AggregatorRegistry.aggregate([this.#kept, counts] as unknown as object[]);
      this.#kept = await sum.getMetricsAsJSON();
    });
  }

  async metrics(): Promise<MetricsSnapshot> {
    await this.#added;
    return this.#kept;
  }
}

function isCount({ type }: { readonly type?: string }): boolean {
  return type === "counter" || type === "histogram";
}
