/** Where a bench ran: figures of two machines say nothing about each other. */
import { availableParallelism, cpus, release, totalmem } from "node:os";
import { ConfigError } from "../errors.ts";
import { openFilesLimit } from "../http/open-files.ts";

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryMib: number;
  readonly kernel: string;
  readonly node: string;
}

/** For modules, publishes, and what Node.js holds open itself. */
const RESERVED_DESCRIPTORS = 100;

export function thisMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    memoryMib: Math.round(totalmem() / 1_048_576),
    kernel: `${process.platform} ${release()}`,
    node: process.version.slice(1),
  };
}

/** Throws ConfigError where this process may not open so many connections. `limit` null: none is known. */
export function checkDescriptors(connections: number, limit: number | null = openFilesLimit()): void {
  const needed = connections + RESERVED_DESCRIPTORS;
  if (limit === null || needed <= limit) return;
  throw new ConfigError(
    `${connections.toLocaleString("en")} readers need ${needed.toLocaleString("en")} open files, and this process may have ` +
      `${limit.toLocaleString("en")}: run ulimit -n ${needed} in this shell first (as root where it is refused), or give fewer --readers. ` +
      "The gateway needs as many.",
  );
}
