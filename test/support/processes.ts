/** Processes as Linux shows them. */
import { readdirSync, readFileSync } from "node:fs";

/** Ids of the children of a process, in the order in which they were started. */
export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(" "))
    .filter((id) => id !== "")
    .map(Number);
}

/** True while there is such a process; one that has ended and was not waited for is none. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
