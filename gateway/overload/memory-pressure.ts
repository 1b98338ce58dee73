/**
 * How much of the memory is used. With a control group's limit the whole group counts, with what the kernel keeps for sockets; without
 * one, this process against its part of what all workers may use.
 */
import os from "node:os";
import { MemoryGroups } from "./control-group.ts";
import { LEAST_MEMORY_SHARE } from "./ladder.ts";

export interface MemoryOptions {
  /** What all workers together may keep resident; null: the control group's limit, or the machine's memory. */
  readonly limitBytes: number | null;
  readonly workers: number;
  /** Connections of any kind, and open streams whose socket is full. */
  connections(): number;
  blocked(): number;
}

export interface MemoryUse {
  readonly usedBytes: number;
  readonly limitBytes: number;
}

export class MemoryPressure {
  readonly #options: MemoryOptions;
  readonly #groups: MemoryGroups | null;
  readonly #bytesAtStart = process.memoryUsage.rss();

  constructor(options: MemoryOptions) {
    this.#options = options;
    // A limit that somebody has set is meant for the gateway, whatever else lives in its group.
    this.#groups = options.limitBytes === null ? new MemoryGroups() : null;
  }

  read(): MemoryUse {
    const { workers } = this.#options;
    const group = this.#groups?.fullest ?? null;
    if (group !== null) {
      const { usedBytes, limitBytes } = group;
      if (usedBytes < limitBytes * LEAST_MEMORY_SHARE) return group;
      const own = { residentBytes: process.memoryUsage.rss(), reserveBytes: this.#reserveBytes() };
      return { usedBytes: usedInGroup(usedBytes, workers, own), limitBytes };
    }
    const limitBytes = (this.#options.limitBytes ?? os.totalmem()) / workers;
    const usedBytes = process.memoryUsage.rss();
    if (usedBytes < limitBytes * LEAST_MEMORY_SHARE) return { usedBytes, limitBytes };
    return { usedBytes: usedBytes - this.#reserveBytes(), limitBytes };
  }

  #reserveBytes(): number {
    const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
    return reserveOf({
      residentBytes: rss,
      bytesAtStart: this.#bytesAtStart,
      liveBytes: heapUsed + arrayBuffers,
      connections: this.#options.connections(),
      blocked: this.#options.blocked(),
    });
  }
}

/**
 * What a group uses of its memory, as if every worker in it were like this one and had as much in reserve. `workers` is the most that there
 * may be; those that run now are no more than fit into what is used. One that uses its reserve up adds nothing to the group meanwhile, and
 * has none then.
 */
export function usedInGroup(
  usedBytes: number,
  workers: number,
  own: { readonly residentBytes: number; readonly reserveBytes: number },
): number {
  const alike = Math.max(1, Math.min(workers, usedBytes / own.residentBytes));
  return Math.max(0, usedBytes - alike * own.reserveBytes);
}

export interface Residence {
  readonly residentBytes: number;
  readonly bytesAtStart: number;
  /** Of the heap and of buffers, garbage included that has not been collected. */
  readonly liveBytes: number;
  readonly connections: number;
  readonly blocked: number;
}

/**
 * Bytes that are resident and yet free: V8 and glibc keep what they were given back, and after a burst that may be most of it. Counted as
 * used it would hold a worker at the top of the ladder for ever. They cannot be asked, so this is what is there beyond a generous
 * estimate of what is needed.
 */
export function reserveOf({ residentBytes, bytesAtStart, liveBytes, connections, blocked }: Residence): number {
  const needed = bytesAtStart + liveBytes * ALLOCATOR_FACTOR + connections * CONNECTION_BYTES + blocked * BLOCKED_BYTES;
  return Math.max(0, residentBytes - needed);
}

/** What small blocks take beside their bytes; 1.4 measured with events of 400 bytes. */
const ALLOCATOR_FACTOR = 1.5;
/** A connection in the engine. */
const CONNECTION_BYTES = 4_096;
/** Most that the engine keeps for a full socket: the largest frame, and its string may have twice the room. */
const BLOCKED_BYTES = 144 * 1024;
