/** Collects garbage now. V8 itself waits for allocations, and a worker that refuses everything makes few. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: (() => void) | null = null;

/** Takes some 10 to 200 ms, by how much lives. */
export function collectGarbage(): void {
  collect ??= findCollector();
  collect();
}

/** The flag is asked for when a context is made, so it need not be given at the start, and the program's own context goes without. */
function findCollector(): () => void {
  setFlagsFromString("--expose-gc");
  try {
    return runInNewContext("gc") as () => void;
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}
