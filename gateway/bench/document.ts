/** What a bench found, as it is printed with --json, saved, and compared. */
import { z } from "zod";
import type { LoaderUse } from "./loader-meter.ts";
import type { Machine } from "./machine.ts";
import type { Plan } from "./plan.ts";

/** The shape of the document; a later one that cannot be compared with it has another number. */
export const DOCUMENT_FORMAT = 1;

/**
 * - `ok`: nothing was wrong.
 * - `faulty`: something was lost, doubled, out of order, closed, or not taken.
 * - `failed`: the gateway refused, so that there is nothing to judge.
 * - `void`: this process was the bottleneck; the figures are not the gateway's.
 * - `interrupted`: it was cut short; the figures are of what there was.
 */
export const VERDICTS = ["ok", "faulty", "failed", "void", "interrupted"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Figures, each null where it was not measured. docs/bench.md says what each means. */
export interface Measures {
  connectsPerSecond: number | null;
  connectP50Ms: number | null;
  connectP99Ms: number | null;
  eventsPerSecond: number | null;
  latencyP50Ms: number | null;
  latencyP99Ms: number | null;
  latencyP999Ms: number | null;
  latencyMaxMs: number | null;
  /** `stalled`: of the same readers, before some of the others stopped. */
  calmP99Ms: number | null;
  /** `stalled`: until those who had stopped had everything. */
  catchUpSeconds: number | null;
  cpuSecondsPerMillion: number | null;
  cpuMicrosPerConnect: number | null;
  kibPerConnection: number | null;
}

export interface WorkloadResult {
  readonly workload: string;
  readonly plan: Plan;
  readonly verdict: Verdict;
  /** Why it is not `ok`. */
  readonly reasons: readonly string[];
  /** What a reader of the figures should know. */
  readonly notes: readonly string[];
  readonly measures: Measures;
  readonly judged: {
    readonly readers: number;
    readonly published: number;
    readonly events: number;
    readonly lost: number;
    readonly doubled: number;
    readonly disordered: number;
    readonly missedInGaps: number;
    readonly gaps: Readonly<Record<string, number>>;
  };
  /** How busy this process was while it measured. */
  readonly loader: Omit<LoaderUse, "isSaturated">;
}

export interface BenchDocument {
  readonly format: number;
  readonly penstockVersion: string;
  /** ISO 8601, when it began. */
  readonly when: string;
  readonly machine: Machine;
  readonly target: { readonly url: string; readonly penstockVersion: string };
  readonly interrupted: boolean;
  /** Why there are no figures of the gateway's process; null where there are. */
  readonly noGatewayFigures: string | null;
  readonly results: readonly WorkloadResult[];
}

export function noMeasures(): Measures {
  return {
    connectsPerSecond: null,
    connectP50Ms: null,
    connectP99Ms: null,
    eventsPerSecond: null,
    latencyP50Ms: null,
    latencyP99Ms: null,
    latencyP999Ms: null,
    latencyMaxMs: null,
    calmP99Ms: null,
    catchUpSeconds: null,
    cpuSecondsPerMillion: null,
    cpuMicrosPerConnect: null,
    kibPerConnection: null,
  };
}

/** As much of a saved document as a comparison needs. */
export const savedSchema = z.object({
  format: z.literal(DOCUMENT_FORMAT),
  penstockVersion: z.string(),
  when: z.string(),
  machine: z.object({ cores: z.number(), cpu: z.string(), node: z.string() }),
  results: z.array(
    z.object({
      workload: z.string(),
      plan: z.record(z.string(), z.union([z.string(), z.number()])),
      verdict: z.enum(VERDICTS),
      measures: z.record(z.string(), z.number().nullable()),
    }),
  ),
});
export type SavedDocument = z.infer<typeof savedSchema>;
