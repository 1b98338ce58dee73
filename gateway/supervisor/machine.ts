/** What the machine, or the control group that this process lives in, lets it use. */
import { readFileSync } from "node:fs";
import os from "node:os";
import { memoryLimitBytes } from "../worker/memory-limit.ts";
import type { Machine } from "./fleet-size.ts";

export function machine(read: (file: string) => string | null = readFile): Machine {
  return {
    cores: Math.min(os.availableParallelism(), cpuQuota(read) ?? Number.POSITIVE_INFINITY),
    memoryBytes: memoryLimitBytes(),
  };
}

/** Cores that a control group's quota gives (v2, then v1); null without one. */
function cpuQuota(read: (file: string) => string | null): number | null {
  const [quota, period] = read("/sys/fs/cgroup/cpu.max")?.trim().split(" ") ?? [
    read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    read("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
  ];
  const cores = Number(quota) / Number(period);
  return Number.isFinite(cores) && cores > 0 ? cores : null;
}

function readFile(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // Not this kind of control group, or not Linux.
    return null;
  }
}
