/** Runs workloads one after the other against one gateway. */
import { PenstockError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { type BenchTarget, greet } from "./bench-target.ts";
import { type BenchDocument, DOCUMENT_FORMAT, type WorkloadResult } from "./document.ts";
import { GatewayMetrics } from "./gateway-metrics.ts";
import { thisMachine } from "./machine.ts";
import type { Plan } from "./plan.ts";
import { runWorkload } from "./workload.ts";

export interface BenchRequest {
  readonly target: BenchTarget;
  readonly adminUrl: string;
  readonly plans: readonly Plan[];
  /** Aborted: comes to its end at once, with what there is. */
  readonly signal: AbortSignal;
  progress(step: string, share: number): void;
}

/** Throws PenstockError where there is no gateway to bench. */
export async function bench({ target, adminUrl, plans, signal, progress }: BenchRequest): Promise<BenchDocument> {
  const when = new Date().toISOString();
  const penstockVersion = await greet(target);
  const metrics = new GatewayMetrics(adminUrl);
  // Made ready before it is measured: the first scrape costs the most.
  await metrics.sample();
  const results: WorkloadResult[] = [];
  for (const plan of plans) {
    if (signal.aborted) break;
    const context = {
      target,
      metrics,
      signal,
      progress: (step: string, share: number) => progress(`${plan.workload}: ${step}`, share),
    };
    results.push(await runWorkload(plan, context));
  }
  if (results.length === 0) throw new PenstockError("PENSTOCK_BENCH", "It was interrupted before anything was measured.");
  return {
    format: DOCUMENT_FORMAT,
    penstockVersion: VERSION,
    when,
    machine: thisMachine(),
    target: { url: target.base, penstockVersion },
    interrupted: signal.aborted,
    noGatewayFigures: metrics.problem,
    results,
  };
}

/** Whether everything was measured and nothing was wrong. */
export function isFlawless({ results, interrupted }: BenchDocument): boolean {
  return !interrupted && results.every(({ verdict }) => verdict === "ok");
}
