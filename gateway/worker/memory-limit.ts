import { readFileSync } from "node:fs";
import os from "node:os";

/** Bytes of memory that this process may use: the control group's limit (v2, then v1), else the machine's memory. */
export function memoryLimitBytes(read: (file: string) => string | null = readFile): number {
  const total = os.totalmem();
  for (const file of ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]) {
    // `max`, or v1's number near 2^63, both mean no limit.
    const limit = Number(read(file)?.trim() ?? Number.NaN);
    if (Number.isFinite(limit) && limit > 0 && limit < total) return limit;
  }
  return total;
}

function readFile(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // Not this kind of control group, or not Linux.
    return null;
  }
}
