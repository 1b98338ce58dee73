/** What to do about a gateway that does not take the readers. */
import { type Plan, readersPerRun } from "./plan.ts";
import { refusalText } from "./poster.ts";
import type { Refusal } from "./reader-group.ts";

/** Why a workload could not begin, and the way out. `opened` readers were taken before. */
export function explainRefusal({ status, text }: Refusal, plan: Plan, opened: number): string {
  const what = `reader ${(opened + 1).toLocaleString("en")} was refused: ${refusalText(status, text)}`;
  return `${what}${hint(status, text, plan)}`;
}

function hint(status: number, text: string, plan: Plan): string {
  switch (status) {
    case 401:
    case 403:
      return ". Give --token or PENSTOCK_TOKEN, with the rights to read and to publish all runs.";
    case 503: {
      const each = readersPerRun(plan);
      return /subscriber|reader/i.test(text)
        ? ` This bench has ${each} readers on a run: give more --runs, or start the gateway with --max-subscribers-per-stream ${each}.`
        : " Give fewer --readers, or let the gateway hold more (streaming.maxConnectionsPerWorker, its ulimit -n).";
    }
    case 0:
      if (text.includes("EADDRNOTAVAIL"))
        return ". This machine has no free port left for it: wait a minute for those of an earlier bench, or give fewer --readers.";
      return ". The gateway may be full (streaming.maxConnectionsPerWorker, its ulimit -n), or gone: look at its log.";
    default:
      return "";
  }
}
