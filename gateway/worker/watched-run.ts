/** What the table keeps of a run: the broker's watch, which speaks to the run through this, and the timer of its next flush. */
import type { Gap, RunObserver, StoredEntry, Tail, Watch } from "../broker/broker.ts";
import type { Run } from "../stream/run.ts";

export class WatchedRun implements RunObserver {
  readonly run: Run;
  watch: Watch | null = null;
  readonly #failed: (run: Run, error: unknown) => void;
  #timer: NodeJS.Timeout | null = null;
  #timerAt: number | null = null;

  /** `failed` hears of what the run threw: a fault of ours, for which the broker's reader of other runs must not suffer. */
  constructor(run: Run, failed: (run: Run, error: unknown) => void) {
    this.run = run;
    this.#failed = failed;
  }

  /** Calls back at `at`, once; a later time than one that is set already changes nothing. */
  callAt(at: number, now: number, callback: () => void): void {
    if (this.#timerAt !== null && at >= this.#timerAt) return;
    this.stopTimer();
    this.#timerAt = at;
    this.#timer = setTimeout(() => {
      this.#timerAt = null;
      callback();
    }, at - now);
  }

  stopTimer(): void {
    if (this.#timerAt === null) return;
    clearTimeout(this.#timer!);
    this.#timerAt = null;
  }

  onTail(tail: Tail): void {
    this.#guard(() => this.run.onTail(tail));
  }

  onEntries(entries: readonly StoredEntry[]): void {
    this.#guard(() => this.run.onEntries(entries));
  }

  onGap(gap: Gap, newest: string | null): void {
    this.#guard(() => this.run.onGap(gap, newest));
  }

  onMark(endedId: string): void {
    this.#guard(() => this.run.onMark(endedId));
  }

  onOutage(): void {
    this.#guard(() => this.run.onOutage());
  }

  onRecovered(): void {
    this.#guard(() => this.run.onRecovered());
  }

  hasSeen(id: string): boolean {
    return this.run.hasSeen(id);
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failed(this.run, error);
    }
  }
}
