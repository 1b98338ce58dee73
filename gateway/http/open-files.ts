/** How many connections this process can hold before it runs out of descriptors. */
import { readFileSync } from "node:fs";

/** For Redis, log files, the admin port, and connections that the kernel has accepted while we close. */
const RESERVED_DESCRIPTORS = 2_000;

/** The process's limit of open files as /proc tells it; null where it does not (macOS) or there is none. */
export function openFilesLimit(limits = "/proc/self/limits"): number | null {
  try {
    const match = /^Max open files +(\d+)/m.exec(readFileSync(limits, "utf8"));
    return match === null ? null : Number(match[1]);
  } catch {
    return null;
  }
}

/** `wanted`, or less where descriptors would not suffice: the engine spins when it cannot accept for want of one. */
export function affordableConnections(wanted: number, limit: number | null): number {
  return limit === null ? wanted : Math.max(1, Math.min(wanted, limit - Math.min(RESERVED_DESCRIPTORS, Math.floor(limit / 2))));
}
