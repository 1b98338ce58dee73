/** docs/metrics.md, out of gateway/metrics/definitions.ts. */
import { METRICS, type MetricDefinition } from "../../gateway/metrics/definitions.ts";

const INTRODUCTION = `# Metrics

<!-- Made by scripts/docs.ts from gateway/metrics/definitions.ts; edit that. -->

\`GET /metrics\` on the admin port (9090) gives Prometheus' text format. Every series exists from the start, at 0, so that \`rate()\` sees the first increment. No label comes from
a client. Several workers are summed. Beside these there are Node.js' own, \`nodejs_…\` and \`process_…\`: heap, event loop lag, garbage collection, CPU, resident memory,
descriptors.

The admin port also answers \`/healthz\` (200 while the process answers at all; it never asks Redis) and \`/readyz\` (200, or 503 with a reason: starting, draining, overloaded, or a broker
that can neither be read nor waited for).

| metric | type | labels | meaning |
|---|---|---|---|`;

export function metricsPage(): string {
  return `${[INTRODUCTION, ...Object.entries<MetricDefinition>(METRICS).map(([name, definition]) => row(name, definition))].join("\n")}\n`;
}

function row(name: string, { type, help, label, merged }: MetricDefinition): string {
  const own = label === undefined ? [] : [`\`${label.name}\`: ${label.values.join(", ")}`];
  const labels = [...own, ...(merged === "each" ? ["`worker`: 0, 1, …"] : [])].join("; ") || "–";
  return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
}
