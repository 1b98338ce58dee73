/**
 * Publishes events at a steady rate, whatever the gateway does: an event's time is when it was due to be sent, so the wait behind a slow
 * answer counts ("coordinated omission"). A run has one batch under way at a time, since the order of two would be anybody's.
 */
import { setTimeout as wait } from "node:timers/promises";
import { MAX_BATCH_EVENTS, MAX_BODY_BYTES } from "../../protocol/wire.ts";
import { benchEvent } from "./bench-event.ts";
import type { BenchRun } from "./bench-run.ts";
import { type Poster, refusalText } from "./poster.ts";
import { addExample, type Tally } from "./tally.ts";

/** After so many failures in a row there is nobody to publish to. */
const HOPELESS = 50;
const MAX_BATCH_BYTES = MAX_BODY_BYTES / 4;

export class Publisher {
  readonly #poster: Poster;
  readonly #tally: Tally;
  readonly #bytes: number;
  /** Runs with a batch under way. */
  #busy = 0;
  #failuresInARow = 0;

  /** `bytes`: of the payload. */
  constructor(poster: Poster, tally: Tally, bytes: number) {
    this.#poster = poster;
    this.#tally = tally;
    this.#bytes = bytes;
  }

  get isIdle(): boolean {
    return this.#busy === 0;
  }

  /** Events by turns to all runs, `rate` a second in all; resolves when the last is due, at the abort, or when nothing is taken. */
  async play(
    runs: readonly BenchRun[],
    rate: number,
    seconds: number,
    signal: AbortSignal,
    progress: (share: number) => void,
  ): Promise<void> {
    const total = Math.max(1, Math.floor(rate * seconds));
    const start = performance.now();
    for (let sent = 0; sent < total && !signal.aborted && this.#failuresInARow < HOPELESS; ) {
      const due = Math.min(total, Math.floor(((performance.now() - start) / 1_000) * rate) + 1);
      while (sent < due) this.publish(runs[sent++ % runs.length]!, 1);
      progress(sent / total);
      if (sent < total) await wait(Math.max(1, start + (sent / rate) * 1_000 - performance.now()));
    }
  }

  publish(run: BenchRun, count: number): void {
    const now = Math.floor(performance.now() * 1_000);
    for (let i = 0; i < count; i++) run.queue.push(benchEvent(run.published++, now, this.#bytes));
    if (!run.isPublishing) void this.#send(run);
  }

  async #send(run: BenchRun): Promise<void> {
    run.isPublishing = true;
    this.#busy++;
    while (run.queue.length > 0) {
      const first = run.published - run.queue.length;
      const batch = takeBatch(run);
      const { status, text } = await this.#poster.post(run.id, "/events", `{"events":[${batch.join(",")}]}`);
      this.#failuresInARow = status === 200 ? 0 : this.#failuresInARow + 1;
      if (status === 200) continue;
      this.#tally.unpublished++;
      addExample(this.#tally, `a publish was answered ${refusalText(status, text)}`);
      for (let i = 0; i < batch.length; i++) run.unconfirmed.add(first + i);
    }
    run.isPublishing = false;
    this.#busy--;
  }
}

function takeBatch(run: BenchRun): string[] {
  let bytes = 0;
  let count = 0;
  while (count < run.queue.length && count < MAX_BATCH_EVENTS && bytes < MAX_BATCH_BYTES) bytes += run.queue[count++]!.length;
  return run.queue.splice(0, count);
}
