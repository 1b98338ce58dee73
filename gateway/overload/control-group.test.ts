import { describe, expect, it } from "vitest";
import { MemoryGroups } from "./control-group.ts";

const MIB = 2 ** 20;
const MACHINE = 8_192 * MIB;

function groups(files: Record<string, string>): MemoryGroups {
  return new MemoryGroups((file) => files[file] ?? null, MACHINE);
}

const V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const V1_MOUNT =
  "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

describe("version 2", () => {
  it("in a container: the limit at the root, and what is used without idle file pages", () => {
    const group = groups({
      "/proc/self/cgroup": "0::/\n",
      "/proc/self/mountinfo": V2_MOUNT,
      "/sys/fs/cgroup/memory.max": `${512 * MIB}\n`,
      "/sys/fs/cgroup/memory.current": `${400 * MIB}\n`,
      "/sys/fs/cgroup/memory.stat": `anon ${200 * MIB}\ninactive_file ${100 * MIB}\nactive_file 5\n`,
    });
    expect(group.leastLimitBytes).toBe(512 * MIB);
    expect(group.fullest).toEqual({ limitBytes: 512 * MIB, usedBytes: 300 * MIB });
  });

  it("on a machine: a limit of any group on the way up counts, and the fullest is shown", () => {
    const own = "/sys/fs/cgroup/system.slice/penstock.service";
    const files = {
      "/proc/self/cgroup": "0::/system.slice/penstock.service\n",
      "/proc/self/mountinfo": V2_MOUNT,
      [`${own}/memory.max`]: `${256 * MIB}\n`,
      [`${own}/memory.current`]: `${64 * MIB}\n`,
      "/sys/fs/cgroup/system.slice/memory.max": `${1_024 * MIB}\n`,
      "/sys/fs/cgroup/system.slice/memory.current": `${900 * MIB}\n`,
    };
    expect(groups(files).leastLimitBytes).toBe(256 * MIB);
    expect(groups(files).fullest).toEqual({ limitBytes: 1_024 * MIB, usedBytes: 900 * MIB });
  });

  it("in a container that is told the host's path", () => {
    const files = {
      "/proc/self/cgroup": "0::/kubepods/pod1/main/inner\n",
      "/proc/self/mountinfo": V2_MOUNT.replace(" / ", " /kubepods/pod1/main "),
      "/sys/fs/cgroup/inner/memory.max": `${128 * MIB}\n`,
      "/sys/fs/cgroup/memory.max": `${256 * MIB}\n`,
    };
    expect(groups(files).leastLimitBytes).toBe(128 * MIB);
    expect(groups({ ...files, "/proc/self/cgroup": "0::/../other\n" }).leastLimitBytes).toBe(256 * MIB);
  });

  it("without a limit, or with one beyond the machine's memory, has none", () => {
    const files = { "/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": V2_MOUNT, "/sys/fs/cgroup/memory.current": "5\n" };
    expect(groups({ ...files, "/sys/fs/cgroup/memory.max": "max\n" })).toMatchObject({ leastLimitBytes: null, fullest: null });
    expect(groups({ ...files, "/sys/fs/cgroup/memory.max": `${MACHINE}\n` }).leastLimitBytes).toBeNull();
  });
});

describe("version 1", () => {
  const files = {
    "/proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/abc\n0::/\n",
    "/proc/self/mountinfo": V1_MOUNT,
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": `${512 * MIB}\n`,
    "/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": `${300 * MIB}\n`,
    "/sys/fs/cgroup/memory/docker/abc/memory.stat": `inactive_file 1\ntotal_inactive_file ${50 * MIB}\n`,
  };

  it("is read where the memory controller is there, beside version 2", () => {
    const hybrid = `${V1_MOUNT}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n`;
    const group = groups({ ...files, "/proc/self/mountinfo": hybrid });
    expect(group.fullest).toEqual({ limitBytes: 512 * MIB, usedBytes: 250 * MIB });
  });

  it("has no limit where it says 2^63", () => {
    expect(groups({ ...files, "/proc/self/cgroup": "4:memory:/\n" }).leastLimitBytes).toBeNull();
  });
});

it("elsewhere than on Linux there is none", () => {
  expect(groups({})).toMatchObject({ leastLimitBytes: null, fullest: null });
});
