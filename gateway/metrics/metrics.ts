/**
 * The counters of one process. The hot paths add to plain numbers; prom-client gets them only when somebody asks, because its own
 * `inc` hashes labels on each call, which at one call a delivery would cost more than the delivery's bookkeeping.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { METRICS, type MetricDefinition, type MetricName } from "./definitions.ts";

type Definitions = typeof METRICS;
type NamesOf<Type extends MetricDefinition["type"]> = {
  [Name in MetricName]: Definitions[Name]["type"] extends Type ? Name : never;
}[MetricName];

export type CounterName = NamesOf<"counter">;
export type GaugeName = NamesOf<"gauge">;
export type HistogramName = NamesOf<"histogram">;

/** The values that a metric's label may have; undefined for a metric without one. */
export type LabelOf<Name extends MetricName> = Definitions[Name] extends {
  readonly label: { readonly values: readonly (infer Value)[] };
}
  ? Value
  : undefined;

type IncArguments<Name extends MetricName> =
  LabelOf<Name> extends undefined ? [labelValue?: undefined, by?: number] : [labelValue: LabelOf<Name>, by?: number];
type ReadArguments<Name extends MetricName> =
  LabelOf<Name> extends undefined ? [labelValue?: undefined] : [labelValue: LabelOf<Name>];

/** What a process measured, as prom-client's `getMetricsAsJSON` gives it: plain data that can cross a process border. */
export type MetricsSnapshot = object[];

export interface Metrics {
  /** Adds `by` (1); a gauge takes negative ones too. As cheap as an addition. */
  inc<Name extends CounterName | GaugeName>(name: Name, ...rest: IncArguments<Name>): void;
  /** Sets a gauge. */
  set<Name extends GaugeName>(name: Name, value: number, ...rest: ReadArguments<Name>): void;
  /** Adds one sample to a histogram, in its unit (seconds). About 150 ns: once a flush, not once an event. */
  observe(name: HistogramName, value: number): void;
  /** The present value of a counter or gauge. */
  value<Name extends CounterName | GaugeName>(name: Name, ...rest: ReadArguments<Name>): number;
  /** `own`: without Node's own metrics, whose collection costs more the more connections there are. */
  snapshot(part?: SnapshotPart): Promise<MetricsSnapshot>;
}

export type SnapshotPart = "all" | "own";

/** `processMetrics` adds Node's own: heap, event loop lag, CPU, descriptors, garbage collection. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  const processRegistry = new Registry();
  const plain: Record<string, number> = {};
  const labelled: Record<string, Record<string, number>> = {};
  const histograms: Record<string, Histogram> = {};

  for (const [name, definition] of Object.entries<MetricDefinition>(METRICS)) {
    if (definition.type === "histogram") {
      histograms[name] = new Histogram({
        name,
        help: definition.help,
        registers: [registry],
        ...(definition.buckets === undefined ? {} : { buckets: [...definition.buckets] }),
      });
      continue;
    }
    if (definition.label === undefined) plain[name] = 0;
    else labelled[name] = Object.fromEntries(definition.label.values.map((value) => [value, 0]));
    register(registry, name, definition, plain, labelled[name]);
  }
  if (options.processMetrics ?? true) collectDefaultMetrics({ register: processRegistry, eventLoopMonitoringPrecision: LOOK_MS });

  // The signatures of `Metrics` tie each label to its metric, which holds for callers; inside, names and labels are strings.
  const metrics: Loose = {
    inc(name: string, labelValue?: string, by = 1): void {
      if (labelValue === undefined) plain[name]! += by;
      else labelled[name]![labelValue]! += by;
    },
    set(name: string, value: number, labelValue?: string): void {
      if (labelValue === undefined) plain[name] = value;
      else labelled[name]![labelValue] = value;
    },
    observe(name: string, value: number): void {
      histograms[name]!.observe(value);
    },
    value(name: string, labelValue?: string): number {
      return labelValue === undefined ? plain[name]! : labelled[name]![labelValue]!;
    },
    async snapshot(part = "all"): Promise<MetricsSnapshot> {
      const own = await registry.getMetricsAsJSON();
      return part === "own" ? own : [...own, ...(await processRegistry.getMetricsAsJSON()).map(withoutLook)];
    },
  };
  return metrics as Metrics;
}

/** Between two looks at the event loop. Each wakes the process: every 10 ms they took 0.4 % of a core, so they take 0.1 %. */
const LOOK_MS = 50;
const LAG = /^nodejs_eventloop_lag_(min|max|mean|p\d+)_seconds$/;

/** Node tells how long it was from look to look; lag is what goes beyond. */
function withoutLook(metric: object): object {
  const { name, values } = metric as { name: string; values: readonly { value: number }[] };
  if (!LAG.test(name)) return metric;
  return { ...metric, values: values.map((one) => ({ ...one, value: lagOf(one.value) })) };
}

/** Between two scrapes in a moment there is no look, and Node gives NaN, or the largest number that there is. */
function lagOf(seconds: number): number {
  return seconds < NEVER_SECONDS ? Math.max(0, seconds - LOOK_MS / 1_000) : 0;
}

const NEVER_SECONDS = 1e6;

interface Loose {
  inc(name: string, labelValue?: string, by?: number): void;
  set(name: string, value: number, labelValue?: string): void;
  observe(name: string, value: number): void;
  value(name: string, labelValue?: string): number;
  snapshot(part?: SnapshotPart): Promise<MetricsSnapshot>;
}

function register(
  registry: Registry,
  name: string,
  definition: MetricDefinition,
  plain: Record<string, number>,
  series: Record<string, number> | undefined,
): void {
  const label = definition.label?.name;
  const configuration = {
    name,
    help: definition.help,
    labelNames: label === undefined ? [] : [label],
    registers: [registry],
    collect(this: Counter | Gauge): void {
      this.reset();
      if (label === undefined || series === undefined) this.inc(plain[name]!);
      else for (const [value, count] of Object.entries(series)) this.inc({ [label]: value }, count);
    },
  };
  if (definition.type === "counter") new Counter(configuration);
  else new Gauge({ ...configuration, aggregator: definition.merged === "max" ? "max" : "sum" });
}
