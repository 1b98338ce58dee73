/** Who watches which run of the memory broker, and what they have not been told yet. */
import { later } from "../../later.ts";
import type { BrokerLog, RunObserver, StoredEntry, Tail, Watch } from "../broker.ts";

interface WatchedRun {
  /** Entries that watches which have their tail are still to hear. */
  pending: StoredEntry[];
  /** Replaced, never changed: who goes through them may meet one that closes. */
  watches: readonly RunWatch[];
  dirty: boolean;
}

export class Watches {
  readonly #runs = new Map<string, WatchedRun>();
  readonly #tailOf: (runId: string) => Tail;
  readonly #log: BrokerLog;
  #dirty: [string, WatchedRun][] = [];
  #handover: NodeJS.Immediate | null = null;

  constructor(tailOf: (runId: string) => Tail, log: BrokerLog) {
    this.#tailOf = tailOf;
    this.#log = log;
  }

  add(runId: string, observer: RunObserver): Watch {
    let run = this.#runs.get(runId);
    if (run === undefined) {
      run = { pending: [], watches: [], dirty: false };
      this.#runs.set(runId, run);
    }
    const watch = new RunWatch(observer, this, runId);
    run.watches = [...run.watches, watch];
    this.#markDirty(runId, run);
    later(this.#handOver, undefined);
    return watch;
  }

  remove(watch: RunWatch): void {
    const { runId } = watch;
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    run.watches = run.watches.filter((other) => other !== watch);
    if (run.watches.length === 0) this.#runs.delete(runId);
  }

  /** New entries of a run. They are handed over later, so a publish never pays for its readers. */
  push(runId: string, entries: readonly StoredEntry[]): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    for (const entry of entries) run.pending.push(entry);
    this.#markDirty(runId, run);
    // Not a microtask: those still run inside the callback of the request that publishes, where nothing may be written to others.
    this.#handover ??= setImmediate(this.#handOver);
  }

  clear(): void {
    if (this.#handover !== null) clearImmediate(this.#handover);
    this.#handover = null;
    for (const run of this.#runs.values()) for (const watch of run.watches) watch.closed = true;
    this.#runs.clear();
    this.#dirty = [];
  }

  #markDirty(runId: string, run: WatchedRun): void {
    if (run.dirty) return;
    run.dirty = true;
    this.#dirty.push([runId, run]);
  }

  readonly #handOver = (): void => {
    if (this.#handover !== null) clearImmediate(this.#handover);
    this.#handover = null;
    const runs = this.#dirty;
    this.#dirty = [];
    for (const [runId, run] of runs) {
      run.dirty = false;
      const entries = run.pending;
      run.pending = [];
      for (const watch of run.watches) this.#tell(runId, watch, entries);
    }
  };

  #tell(runId: string, watch: RunWatch, entries: readonly StoredEntry[]): void {
    if (watch.closed) return;
    try {
      if (watch.started) {
        if (entries.length > 0) watch.observer.onEntries(entries);
        return;
      }
      // What is pending is in the tail, too.
      watch.started = true;
      watch.observer.onTail(this.#tailOf(runId));
    } catch (error) {
      // One watch that throws must not keep the others from hearing.
      this.#log.error({ runId, err: error }, "The watch of a run failed on what it was told; this is a bug of the gateway.");
    }
  }
}

class RunWatch implements Watch {
  readonly observer: RunObserver;
  started = false;
  closed = false;
  readonly runId: string;
  readonly #watches: Watches;

  constructor(observer: RunObserver, watches: Watches, runId: string) {
    this.observer = observer;
    this.#watches = watches;
    this.runId = runId;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#watches.remove(this);
  }
}
