/** Runs one workload: opens its readers, publishes, waits, ends its runs, and says what came of it. */
import { createHistogram, type RecordableHistogram } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { ZERO_ID } from "../../protocol/event-id.ts";
import { BenchRun } from "./bench-run.ts";
import type { BenchTarget } from "./bench-target.ts";
import { type Measures, noMeasures, type Verdict, type WorkloadResult } from "./document.ts";
import { endRuns } from "./end-runs.ts";
import type { GatewayMetrics, Sample } from "./gateway-metrics.ts";
import { LoaderMeter, type LoaderUse } from "./loader-meter.ts";
import type { Plan } from "./plan.ts";
import { Poster } from "./poster.ts";
import { Publisher } from "./publisher.ts";
import { ReaderGroup } from "./reader-group.ts";
import { explainRefusal } from "./refusal-hint.ts";
import { createTally, faultsOf } from "./tally.ts";

export interface BenchContext {
  readonly target: BenchTarget;
  readonly metrics: GatewayMetrics;
  /** Aborted when the bench is to come to its end at once. */
  readonly signal: AbortSignal;
  /** `share` of the step that is done, 0 to 1. */
  progress(step: string, share: number): void;
}

/** Until the gateway has done what connects leave to do. */
const SETTLE_MS = 250;
/** Before its memory is read: a collection may be under way. */
const MEMORY_SETTLE_MS = 1_000;
/** Readers get no event for so long: what is missing does not come. */
const SILENCE_LIMIT_MS = 10_000;
const END_LIMIT_MS = 10_000;
const CATCH_UP_LIMIT_MS = 30_000;

export async function runWorkload(plan: Plan, context: BenchContext): Promise<WorkloadResult> {
  const run = new WorkloadRun(plan, context);
  try {
    await run.play();
  } finally {
    await run.close();
  }
  return run.result();
}

class WorkloadRun {
  readonly #plan: Plan;
  readonly #context: BenchContext;
  readonly #tally = createTally();
  readonly #measures: Measures = noMeasures();
  readonly #notes: string[] = [];
  readonly #runs: BenchRun[];
  readonly #poster: Poster;
  readonly #publisher: Publisher;
  readonly #group: ReaderGroup;
  #use: LoaderUse = { utilisation: 0, cpuShare: 0, isSaturated: false };

  constructor(plan: Plan, context: BenchContext) {
    const { target } = context;
    this.#plan = plan;
    this.#context = context;
    this.#runs = Array.from({ length: plan.runs }, () => new BenchRun(target, plan.workload === "replay" ? ZERO_ID : null));
    this.#poster = new Poster(target);
    this.#publisher = new Publisher(this.#poster, this.#tally, plan.bytes);
    this.#group = new ReaderGroup(target, this.#tally);
  }

  async play(): Promise<void> {
    const { workload } = this.#plan;
    if (workload === "replay") return this.#replay();
    await this.#connect();
    if (this.#isStopped || workload === "connect") return;
    await this.#publish(workload === "stalled" ? "publishing, all read" : "publishing");
    if (workload === "stalled" && !this.#isStopped) await this.#stall();
  }

  async close(): Promise<void> {
    const group = this.#group;
    const { signal } = this.#context;
    // Who was cut short while it caught up cannot be judged.
    if (signal.aborted) for (const reader of group.readers) if (reader.isStalled) group.dismiss(reader);
    group.expectEnd();
    await group.until(() => this.#publisher.isIdle, SILENCE_LIMIT_MS);
    const touched = new Set(group.readers.filter(({ state }) => state !== "refused").map(({ run }) => run));
    const runs = this.#runs.filter((run) => run.published > 0 || touched.has(run));
    const unended = await endRuns(this.#poster, runs, this.#tally, (share) => this.#context.progress("ending the runs", share));
    await group.until(() => group.closedCount >= group.openedCount, END_LIMIT_MS);
    group.judgeAll(unended === 0);
    group.closeAll();
    this.#poster.close();
  }

  result(): WorkloadResult {
    const tally = this.#tally;
    const { verdict, reasons } = this.#verdict();
    return {
      workload: this.#plan.workload,
      plan: this.#plan,
      verdict,
      reasons,
      notes: this.#notes,
      measures: this.#measures,
      judged: {
        readers: this.#group.openedCount,
        published: this.#runs.reduce((sum, { published }) => sum + published, 0),
        events: tally.events,
        lost: tally.lost,
        doubled: tally.doubled,
        disordered: tally.disordered,
        missedInGaps: tally.missed,
        gaps: Object.fromEntries(tally.gaps),
      },
      loader: { utilisation: rounded(this.#use.utilisation), cpuShare: rounded(this.#use.cpuShare) },
    };
  }

  get #isStopped(): boolean {
    return this.#context.signal.aborted || this.#group.refusal !== null;
  }

  async #open(step: string): Promise<void> {
    const { readers, connectRate } = this.#plan;
    const group = this.#group;
    const start = performance.now();
    await group.open(this.#runs, readers, connectRate, this.#context.signal, (share) => this.#context.progress(step, share));
    const { connectTimes } = group;
    if (connectTimes.count === 0) return;
    this.#measures.connectsPerSecond = rounded((group.openedCount * 1_000) / (performance.now() - start));
    this.#measures.connectP50Ms = milliseconds(connectTimes, 50);
    this.#measures.connectP99Ms = milliseconds(connectTimes, 99);
  }

  async #connect(): Promise<void> {
    const { metrics, progress } = this.#context;
    const before = await metrics.sample();
    const meter = new LoaderMeter();
    await this.#open("opening readers");
    this.#use = meter.read();
    const after = await metrics.sample();
    if (this.#isStopped) return;
    progress("settling", 0);
    const isConnect = this.#plan.workload === "connect";
    await wait(isConnect ? MEMORY_SETTLE_MS : SETTLE_MS);
    if (isConnect) this.#latencyFrom(this.#group.connectTimes);
    if (before === null || after === null || !this.#isOurs(before, after) || !isConnect) return;
    const settled = await metrics.sample();
    if (settled === null) return;
    const opened = this.#group.openedCount;
    this.#measures.cpuMicrosPerConnect = rounded(((after.cpuSeconds - before.cpuSeconds) * 1e6) / opened);
    const kib = (settled.residentBytes - before.residentBytes) / 1_024 / opened;
    // What an earlier bench has left free is used again.
    if (kib > 0) this.#measures.kibPerConnection = rounded(kib);
    else
      this.#notes.push(
        "the gateway's memory did not grow: it used again what it had; start it anew to see what a connection takes",
      );
  }

  /** Publishes for the plan's time and waits until everybody has everything. */
  async #publish(step: string): Promise<{ readonly before: Sample | null; readonly after: Sample | null }> {
    const { metrics, signal, progress } = this.#context;
    const { rate, seconds } = this.#plan;
    const before = await metrics.sample();
    const eventsBefore = this.#tally.events;
    const meter = new LoaderMeter();
    const start = performance.now();
    await this.#publisher.play(this.#runs, rate, seconds, signal, (share) => progress(step, share));
    await this.#untilQuiet(() => this.#publisher.isIdle && this.#group.haveAll);
    this.#use = meter.read();
    const after = await metrics.sample();
    const events = this.#tally.events - eventsBefore;
    const lasted = Math.max(this.#group.lastArrival - start, 1);
    this.#measures.eventsPerSecond = rounded((events * 1_000) / lasted);
    this.#latencyFrom(this.#group.latency);
    if (before !== null && after !== null && events > 0)
      this.#measures.cpuSecondsPerMillion = rounded(((after.cpuSeconds - before.cpuSeconds) * 1e6) / events);
    return { before, after };
  }

  async #stall(): Promise<void> {
    const group = this.#group;
    const { signal, progress } = this.#context;
    this.#measures.calmP99Ms = this.#measures.latencyP99Ms;
    group.renewLatency();
    const stalled = group.readers.filter((_, index) => isStalled(index, this.#plan.stalledPercent));
    for (const reader of stalled) reader.stall();
    const { before, after } = await this.#publish(`publishing, ${stalled.length} of ${group.readers.length} do not read`);
    if (before !== null && after !== null && after.backpressure === before.backpressure)
      this.#notes.push(
        "no socket of a stalled reader was full, the kernel took all: send more (--bytes, --rate, --seconds), or lower net.ipv4.tcp_wmem",
      );
    const start = performance.now();
    progress("waking the stalled readers", 0);
    for (const reader of stalled) reader.wake();
    const haveAll = (): boolean => stalled.every(({ state, judge, run }) => state !== "open" || judge.next >= run.published);
    if (await group.until(haveAll, CATCH_UP_LIMIT_MS, signal))
      this.#measures.catchUpSeconds = rounded((performance.now() - start) / 1_000);
    const cut = stalled.filter(({ state }) => state === "closed").length;
    if (cut > 0) this.#notes.push(`the gateway closed ${cut} of ${stalled.length} stalled readers (streaming.stallSeconds)`);
  }

  async #replay(): Promise<void> {
    const { metrics, signal, progress } = this.#context;
    const { replayEvents } = this.#plan;
    for (const [index, run] of this.#runs.entries()) {
      progress("publishing what is to be replayed", index / this.#runs.length);
      this.#publisher.publish(run, replayEvents);
      await this.#group.until(() => this.#publisher.isIdle, SILENCE_LIMIT_MS, signal);
      if (signal.aborted || this.#tally.unpublished > 0) return;
    }
    const group = this.#group;
    const complete = createHistogram();
    group.onAdvance = ({ judge, began }) => {
      if (judge.next === replayEvents) complete.record(Math.max(1, Math.round((performance.now() - began) * 1_000)));
    };
    const before = await metrics.sample();
    const meter = new LoaderMeter();
    const start = performance.now();
    await this.#open("readers resume");
    if (this.#isStopped) return;
    await this.#untilQuiet(() => group.haveAll);
    this.#use = meter.read();
    const after = await metrics.sample();
    this.#measures.eventsPerSecond = rounded((this.#tally.events * 1_000) / Math.max(group.lastArrival - start, 1));
    this.#latencyFrom(complete);
    if (before !== null && after !== null && this.#isOurs(before, after) && this.#tally.events > 0)
      this.#measures.cpuSecondsPerMillion = rounded(((after.cpuSeconds - before.cpuSeconds) * 1e6) / this.#tally.events);
  }

  async #untilQuiet(isDone: () => boolean): Promise<void> {
    const start = performance.now();
    const isSilent = (): boolean => performance.now() - Math.max(start, this.#group.lastArrival) > SILENCE_LIMIT_MS;
    await this.#group.until(() => isDone() || isSilent(), 60_000, this.#context.signal);
  }

  /** Whether the metrics are those of the gateway that serves our readers, and of all its pods. */
  #isOurs(before: Sample, after: Sample): boolean {
    const seen = after.connectionsOpened - before.connectionsOpened;
    const opened = this.#group.openedCount;
    if (seen < opened) {
      this.#context.metrics.problem = `the admin port tells of ${seen} new streams and there were ${opened}: it is another gateway's, or one of several`;
      return false;
    }
    if (seen > opened || before.connections > 0)
      this.#notes.push("others use this gateway too; its CPU time and memory are not of this bench alone");
    return true;
  }

  #latencyFrom(times: RecordableHistogram): void {
    if (times.count === 0) return;
    this.#measures.latencyP50Ms = milliseconds(times, 50);
    this.#measures.latencyP99Ms = milliseconds(times, 99);
    this.#measures.latencyP999Ms = milliseconds(times, 99.9);
    this.#measures.latencyMaxMs = rounded(times.max / 1_000);
  }

  #verdict(): { readonly verdict: Verdict; readonly reasons: string[] } {
    const { refusal, openedCount } = this.#group;
    const faults = faultsOf(this.#tally);
    const reasons = [...faults, ...this.#tally.examples];
    if (refusal !== null) return { verdict: "failed", reasons: [explainRefusal(refusal, this.#plan, openedCount), ...reasons] };
    const { isSaturated, utilisation, cpuShare } = this.#use;
    if (isSaturated)
      reasons.push(
        `this process had something to do for ${percent(utilisation)} of the time, and a core for ${percent(cpuShare)}: the figures are its own, ` +
          "not the gateway's. Give less load, or stop what else runs here",
      );
    if (faults.length > 0) return { verdict: "faulty", reasons };
    if (this.#context.signal.aborted) return { verdict: "interrupted", reasons };
    return { verdict: isSaturated ? "void" : "ok", reasons };
  }
}

/** One reader at least, and the others evenly between. */
function isStalled(index: number, percent: number): boolean {
  return index === 0 || Math.floor((index * percent) / 100) > Math.floor(((index - 1) * percent) / 100);
}

function milliseconds(times: RecordableHistogram, percentile: number): number {
  return rounded(times.percentile(percentile) / 1_000);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
