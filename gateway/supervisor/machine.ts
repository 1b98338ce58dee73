/** What the machine, the control groups that this process lives in, or a setting let it use. */
import os from "node:os";
import { type GroupFolder, groupFolders, type ReadFile, readFile } from "../overload/control-group.ts";
import { memoryLimitBytes } from "../worker/memory-limit.ts";
import type { Machine } from "./fleet-size.ts";

/** `memoryLimit`: a limit that was set, in bytes; null for the control groups' or the machine's. */
export function machine(memoryLimit: number | null, read: ReadFile = readFile): Machine {
  return {
    cores: Math.min(os.availableParallelism(), ...groupFolders(read, "cpu").map((folder) => quotaOf(folder, read))),
    memoryBytes: memoryLimit ?? memoryLimitBytes(),
  };
}

/** Cores that a control group's quota gives; infinite without one. */
function quotaOf({ path, version }: GroupFolder, read: ReadFile): number {
  const [quota, period] =
    version === 2
      ? (read(`${path}/cpu.max`) ?? "").trim().split(" ")
      : [read(`${path}/cpu.cfs_quota_us`), read(`${path}/cpu.cfs_period_us`)];
  const cores = Number(quota) / Number(period);
  // `max` or -1 where there is none.
  return cores > 0 ? cores : Number.POSITIVE_INFINITY;
}
