import os from "node:os";
import { describe, expect, it } from "vitest";
import { memoryLimitBytes } from "../worker/memory-limit.ts";
import { machine } from "./machine.ts";

const ALL = os.availableParallelism();

function coresWith(files: Record<string, string>): number {
  return machine(null, (file) => files[file] ?? null).cores;
}

describe("cores", () => {
  const v2 = {
    "/proc/self/cgroup": "0::/system.slice/penstock.service\n",
    "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
    "/sys/fs/cgroup/system.slice/penstock.service/cpu.max": "max 100000\n",
  };
  const v1 = {
    "/proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n0::/\n",
    "/proc/self/mountinfo":
      "35 31 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
    "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "-1\n",
    "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n",
  };

  it("are all of the machine's without a quota, and elsewhere than on Linux", () => {
    for (const files of [v2, v1, {}]) expect(coresWith(files)).toBe(ALL);
  });

  it("are the quota's, that of the own group or of one around it", () => {
    expect(coresWith({ ...v2, "/sys/fs/cgroup/system.slice/penstock.service/cpu.max": "50000 100000\n" })).toBe(0.5);
    expect(coresWith({ ...v2, "/sys/fs/cgroup/system.slice/cpu.max": "20000 100000\n" })).toBe(0.2);
    expect(coresWith({ ...v1, "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "75000\n" })).toBe(0.75);
  });
});

it("memory is what was set, else the control group's or the machine's", () => {
  expect(machine(5).memoryBytes).toBe(5);
  expect(machine(null).memoryBytes).toBe(memoryLimitBytes());
});
