/** The readers of a workload: opened at a steady rate, waited for, judged, closed. */
import { createHistogram } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import type { BenchRun } from "./bench-run.ts";
import type { BenchTarget } from "./bench-target.ts";
import { Judge } from "./judge.ts";
import { Reader, type ReaderOwner } from "./reader.ts";
import { sourceAddress } from "./source-address.ts";
import { addExample, type Tally } from "./tally.ts";

export interface Refusal {
  /** 0 where there was no answer. */
  readonly status: number;
  readonly text: string;
}

/** Half of a common backlog: connects that wait in the kernel would be measured as the gateway's. */
const MAX_OPENING = 256;
const ANSWER_LIMIT_MS = 10_000;

export class ReaderGroup implements ReaderOwner {
  readonly readers: Reader[] = [];
  /** Microseconds until the head. */
  readonly connectTimes = createHistogram();
  latency = createHistogram();
  /** The first answer that was none of 200: no more are opened then. */
  refusal: Refusal | null = null;
  openedCount = 0;
  closedCount = 0;
  /** `performance.now()` when events last came. */
  lastArrival = 0;
  /** Hears of a reader that got events. */
  onAdvance: (reader: Reader) => void = () => {};
  readonly #target: BenchTarget;
  readonly #tally: Tally;
  #opening = 0;
  #lastAnswer = 0;
  /** From now on streams are meant to come to their end. */
  #mayClose = false;
  /** Those whose stream was over before. */
  readonly #left = new Set<Reader>();

  constructor(target: BenchTarget, tally: Tally) {
    this.#target = target;
    this.#tally = tally;
  }

  /** Opens `count` readers, by turns on the runs, `rate` a second; resolves when all are answered, at the first refusal, or at the abort. */
  async open(
    runs: readonly BenchRun[],
    count: number,
    rate: number,
    signal: AbortSignal,
    progress: (share: number) => void,
  ): Promise<void> {
    const start = performance.now();
    this.#lastAnswer = start;
    while (this.refusal === null && !signal.aborted && (this.readers.length < count || this.#opening > 0)) {
      const due = Math.min(count, Math.floor(((performance.now() - start) / 1_000) * rate) + 1);
      while (this.readers.length < due && this.#opening < MAX_OPENING) this.#openOne(runs, count);
      progress(this.openedCount / count);
      if (this.#opening > 0 && performance.now() - this.#lastAnswer > ANSWER_LIMIT_MS)
        this.refusal = { status: 0, text: `no answer in ${ANSWER_LIMIT_MS / 1_000} s` };
      await wait(1);
    }
  }

  /** Waits for a fact; false where it is not there in time, or at the abort. */
  async until(isTrue: () => boolean, limitMs: number, signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + limitMs;
    while (!isTrue()) {
      if (performance.now() > deadline || signal?.aborted === true) return false;
      await wait(5);
    }
    return true;
  }

  /** Everybody who is still there has all that was published to his run, the stalled aside. */
  get haveAll(): boolean {
    return this.readers.every(({ state, isStalled, judge, run }) => state !== "open" || isStalled || judge.next >= run.published);
  }

  /** From now on the end of a stream is what should come. */
  expectEnd(): void {
    this.#mayClose = true;
  }

  /** Closes a reader of whom nothing more is wanted. */
  dismiss(reader: Reader): void {
    this.#left.add(reader);
    reader.close();
  }

  /** Judges everybody. `isEnded`: the runs were ended, and there was time to hear of it. */
  judgeAll(isEnded: boolean): void {
    for (const reader of this.readers) {
      const { judge, run, state } = reader;
      // A stream that was closed before its time is a fault of its own, and may lack what came later.
      if (state === "open" || state === "closed") judge.finish(run, isEnded && !this.#left.has(reader));
    }
  }

  /** From now on latency is counted anew. */
  renewLatency(): void {
    this.latency = createHistogram();
  }

  closeAll(): void {
    this.#mayClose = true;
    for (const reader of this.readers) reader.close();
  }

  opened(_reader: Reader, micros: number): void {
    this.#opening--;
    this.openedCount++;
    this.#lastAnswer = performance.now();
    this.connectTimes.record(Math.max(1, Math.round(micros)));
  }

  refused(_reader: Reader, status: number, text: string): void {
    this.#opening--;
    this.#lastAnswer = performance.now();
    if (!this.#mayClose) this.refusal ??= { status, text };
  }

  closed(reader: Reader, isClean: boolean): void {
    this.closedCount++;
    if (reader.judge.hasEnded || this.#mayClose) return;
    this.#left.add(reader);
    // A stalled one is closed by right.
    if (reader.isStalled) return;
    this.#tally.closedEarly++;
    addExample(this.#tally, isClean ? "a stream ended without `end`" : "a stream was cut");
  }

  advanced(reader: Reader): void {
    this.lastArrival = performance.now();
    this.onAdvance(reader);
  }

  #openOne(runs: readonly BenchRun[], count: number): void {
    const index = this.readers.length;
    const run = runs[index % runs.length]!;
    this.#opening++;
    this.readers.push(
      new Reader(this, new Judge(this.#tally), run, this.#target, sourceAddress(this.#target.host, index, count)),
    );
  }
}
