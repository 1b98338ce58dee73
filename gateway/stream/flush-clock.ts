/** When a run's readers are to be served: at once on a quiet run, else together, when enough has gathered or has waited long enough. */
import { BATCH_BYTES } from "./batch.ts";
import { CURSOR_INTERVAL_MS, type RunSettings } from "./run-host.ts";

export class FlushClock {
  readonly #pace: Pick<RunSettings, "coalesceMs">;
  /** When the flush is due that has been asked for and not begun. */
  #plannedAt: number | null = null;
  #lastAt: number | null = null;
  #unsentSince = 0;
  #unsentBytes = 0;
  /** Offset of the ring up to which the last flush has gone. */
  #flushedThrough = 0;
  #cursorsAt: number | null = null;

  constructor(pace: Pick<RunSettings, "coalesceMs">) {
    this.#pace = pace;
  }

  /** Entries have come. */
  grew(bytes: number, now: number): void {
    if (this.#unsentBytes === 0) this.#unsentSince = now;
    this.#unsentBytes += bytes;
  }

  /** A subscriber owes its client a cursor: it goes out within a second, with all others of this run. */
  owesCursors(now: number): void {
    this.#cursorsAt ??= now + CURSOR_INTERVAL_MS;
  }

  /** The time of the next flush, if it is to be asked for: none is due, or one no later than this is planned, and it is null. */
  plan(now: number, ringNext: number, endDueAt: number | null): number | null {
    let at = this.#cursorsAt ?? Number.POSITIVE_INFINITY;
    if (ringNext !== this.#flushedThrough) {
      const last = this.#lastAt;
      const { coalesceMs } = this.#pace;
      if (last === null || now - last >= coalesceMs || this.#unsentBytes >= BATCH_BYTES) at = now;
      else at = Math.min(at, Math.max(this.#unsentSince, last) + coalesceMs);
    }
    if (endDueAt !== null) at = Math.min(at, Math.max(now, endDueAt));
    if (at === Number.POSITIVE_INFINITY || (this.#plannedAt !== null && at >= this.#plannedAt)) return null;
    this.#plannedAt = at;
    return at;
  }

  /** A flush begins; true when it is to send the cursors that are owed. What comes or is owed from now on is for the next one. */
  begin(now: number, ringNext: number): boolean {
    this.#plannedAt = null;
    this.#lastAt = now;
    this.#unsentBytes = 0;
    this.#flushedThrough = ringNext;
    if (this.#cursorsAt === null || now < this.#cursorsAt) return false;
    this.#cursorsAt = null;
    return true;
  }
}
