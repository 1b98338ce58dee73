/** The runs of the memory broker within their bounds: length, time to live, and bytes of all together. */
import type { StoredEntry } from "../broker.ts";
import { RunLog } from "./run-log.ts";

export interface RunStoreOptions {
  /** Bound of all runs together, in bytes, as estimated. */
  readonly totalBytes: number;
  /** Entries kept a run. */
  readonly maxStreamLength: number;
  /** A run is dropped when nothing was appended to it for so long, in milliseconds. */
  readonly ttlMs: number;
  /** Wall clock in milliseconds, which ids are made of. */
  readonly now: () => number;
  /** Monotonic clock in milliseconds, which lives are measured with. */
  readonly monotonic: () => number;
}

interface Run {
  readonly log: RunLog;
  expiresAt: number;
}

export class RunStore {
  readonly #options: RunStoreOptions;
  /** Runs with entries, the coldest first; since all live equally long, that is also the order in which they expire. */
  readonly #runs = new Map<string, Run>();
  /** Runs whose entries were all cut for room: only ids are left, so that a gap can say how many are missing. In the order of their end. */
  readonly #hollow = new Map<string, Run>();
  #bytes = 0;
  #hollowBytes = 0;
  /** No new run may begin at or below this time: a run that was dropped may have had ids up to there. */
  #floorMs = -1;

  constructor(options: RunStoreOptions) {
    this.#options = options;
  }

  /** Runs that something is known of. */
  get size(): number {
    return this.#runs.size + this.#hollow.size;
  }

  /** Bytes that all runs cost, estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  find(runId: string): RunLog | undefined {
    const run = this.#runs.get(runId) ?? this.#hollow.get(runId);
    if (run === undefined || run.expiresAt > this.#options.monotonic()) return run?.log;
    this.#drop(runId, run);
    return undefined;
  }

  /** Stores payloads, at least one, with rising ids, and makes room for them; `reservedBytes` of the total are taken by others. */
  append(runId: string, payloads: readonly Buffer[], reservedBytes: number): StoredEntry[] {
    this.expire();
    const run = this.#take(runId);
    const { log } = run;
    const now = this.#options.now();
    const before = log.bytes;
    const entries = payloads.map((payload) => log.append(payload, now));
    while (log.length > this.#options.maxStreamLength) log.removeOldest();
    this.#bytes += log.bytes - before;
    run.expiresAt = this.#options.monotonic() + this.#options.ttlMs;
    this.#runs.set(runId, run);
    this.#fit(this.#options.totalBytes - reservedBytes, run);
    return entries;
  }

  trim(runId: string, keep: number): void {
    const log = this.find(runId);
    if (log !== undefined) this.#cut(log, keep, Number.POSITIVE_INFINITY);
  }

  delete(runId: string): void {
    const run = this.#runs.get(runId) ?? this.#hollow.get(runId);
    if (run !== undefined) this.#drop(runId, run);
  }

  /** Drops runs whose time is over. Cheap when there are none. */
  expire(): void {
    const now = this.#options.monotonic();
    for (const runs of [this.#hollow, this.#runs]) {
      for (const [runId, run] of runs) {
        if (run.expiresAt > now) break;
        this.#drop(runId, run);
      }
    }
  }

  clear(): void {
    this.#runs.clear();
    this.#hollow.clear();
    this.#bytes = 0;
    this.#hollowBytes = 0;
  }

  /** The run, out of both lists; a new one where it is not known. */
  #take(runId: string): Run {
    const run = this.#runs.get(runId);
    if (run !== undefined) {
      this.#runs.delete(runId);
      return run;
    }
    const hollow = this.#hollow.get(runId);
    if (hollow !== undefined) {
      this.#hollow.delete(runId);
      this.#hollowBytes -= hollow.log.bytes;
      return hollow;
    }
    return { log: new RunLog(this.#floorMs, this.#options.maxStreamLength), expiresAt: 0 };
  }

  /** Cuts the coldest runs first. The run just written to comes last and keeps its newest entry, whatever the bound. */
  #fit(limit: number, current: Run): void {
    if (this.#bytes <= limit) return;
    for (const [runId, run] of this.#runs) {
      if (this.#bytes <= limit) break;
      this.#cut(run.log, run === current ? 1 : 0, this.#bytes - limit);
      if (run.log.length === 0) this.#hollowOut(runId, run);
    }
    for (const [runId, run] of this.#hollow) {
      if (this.#bytes <= limit && this.#hollowBytes <= this.#options.totalBytes * HOLLOW_SHARE) return;
      this.#drop(runId, run);
    }
  }

  #cut(log: RunLog, keep: number, bytesToFree: number): void {
    const before = log.bytes;
    while (log.length > keep && before - log.bytes < bytesToFree) log.removeOldest();
    this.#bytes += log.bytes - before;
  }

  #hollowOut(runId: string, run: Run): void {
    this.#runs.delete(runId);
    this.#hollow.set(runId, run);
    this.#hollowBytes += run.log.bytes;
  }

  #drop(runId: string, run: Run): void {
    this.#runs.delete(runId);
    if (this.#hollow.delete(runId)) this.#hollowBytes -= run.log.bytes;
    this.#bytes -= run.log.bytes;
    this.#floorMs = Math.max(this.#floorMs, run.log.newestMs);
  }
}

/** The part of the total that ids of hollow runs may take. */
const HOLLOW_SHARE = 1 / 8;
