/** Ends the runs of a workload, so that the gateway lets their readers go and keeps nothing open for them. */
import type { BenchRun } from "./bench-run.ts";
import { type Poster, refusalText } from "./poster.ts";
import { addExample, type Tally } from "./tally.ts";

const AT_ONCE = 16;
const LIMIT_MS = 60_000;

/** Resolves with the number of those that could not be ended; the tally says why. */
export async function endRuns(
  poster: Poster,
  runs: readonly BenchRun[],
  tally: Tally,
  progress: (share: number) => void,
): Promise<number> {
  const deadline = performance.now() + LIMIT_MS;
  let next = 0;
  let ended = 0;
  const work = async (): Promise<void> => {
    while (next < runs.length && performance.now() < deadline) {
      const run = runs[next++]!;
      const { status, text } = await poster.post(run.id, "/end", "");
      progress(next / runs.length);
      if (status === 200) ended++;
      else addExample(tally, `the end of a run was answered ${refusalText(status, text)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  tally.unended += runs.length - ended;
  return runs.length - ended;
}
