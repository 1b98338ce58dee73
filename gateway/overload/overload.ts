/** Watches what a worker has left of memory, time and connections, and takes what load off it can before it breaks. */
import type { BrokerLog } from "../broker/broker.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { collectGarbage } from "./garbage.ts";
import { Ladder, LEAST_MEMORY_SHARE, SIGNALS, STEPS, type Step, type Transition } from "./ladder.ts";
import type { PressureProbe } from "./probe.ts";

/** What can be done about too much load: the run table, and where bodies are held. */
export interface Brakes {
  /** Rings together hold about half as much; who falls off is fed from history. */
  shrinkRings(on: boolean): void;
  /** Events wait longer to leave together. */
  widenCoalescing(on: boolean): void;
  /** Ends those streams whose sockets have been full longest, this share of all at most, one at least. Returns how many. */
  dropSlowest(share: number): number;
  /** New streams are refused. */
  refuseNew(on: boolean): void;
}

export interface OverloadParts {
  readonly brakes: Brakes;
  readonly probe: PressureProbe;
  readonly metrics: Metrics;
  readonly log: BrokerLog;
  /** False: measured and shown, and nothing is done. */
  readonly enabled: boolean;
  /** Bodies of requests and long answers get little room while new streams are refused. */
  readonly holdBackBodies?: (on: boolean) => void;
}

export class Overload {
  readonly #parts: OverloadParts;
  readonly #ladder = new Ladder();
  #timer: NodeJS.Timeout | null = null;
  #lookedAt = 0;
  #droppedAt = 0;
  #collectAt = 0;

  constructor(parts: OverloadParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#lookedAt = performance.now();
    this.#timer = setInterval(() => this.#tick(), LOOK_MS).unref();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Number of the highest step taken, 0 to 5. */
  get level(): number {
    return this.#ladder.level;
  }

  /** False while this worker should get no new connections. */
  get isReady(): boolean {
    return this.#ladder.heldBy("readiness_off") === null;
  }

  /** One line for a person: why it is not ready. */
  get detail(): string {
    const signal = this.#ladder.heldBy("readiness_off");
    return signal === null ? "not overloaded" : `overloaded: ${this.#parts.probe.describe(signal)}`;
  }

  /** One look at everything; `start` does this four times a second. `now`: milliseconds that only rise. */
  look(now: number, lateMs: number, sinceMs: number): void {
    const { probe, metrics, enabled } = this.#parts;
    const pressure = probe.read(lateMs, sinceMs);
    for (const signal of SIGNALS) metrics.set("penstock_overload_pressure", pressure[signal], signal);
    if (!enabled) return;
    // Nobody is to suffer for garbage. What a collection has left is seen at the next look.
    if (pressure.memory >= LEAST_MEMORY_SHARE && now >= this.#collectAt) {
      this.#collect(now);
      return;
    }
    for (const transition of this.#ladder.update(pressure, now)) this.#go(transition, now);
    metrics.set("penstock_overload_level", this.level);
    if (this.#ladder.heldBy("drop_slowest") !== null && now - this.#droppedAt >= ROUND_MS) this.#dropSlowest(now);
  }

  #tick(): void {
    const now = performance.now();
    const sinceMs = now - this.#lookedAt;
    this.#lookedAt = now;
    this.look(now, sinceMs - LOOK_MS, sinceMs);
  }

  #go({ step, entered, signal, share }: Transition, now: number): void {
    const { log, metrics, probe } = this.#parts;
    const used = { signal, share: Math.round(share * 1000) / 1000, now: probe.describe(signal) };
    const fields = { overloadLevel: STEPS.indexOf(step) + 1, step, ...used };
    if (entered) {
      metrics.inc("penstock_overload_steps_total", step);
      log.warn(fields, `overload: ${MESSAGES[step].entered}`);
    } else log.info(fields, `overload: ${MESSAGES[step].left}`);
    this.#apply(step, entered, now);
  }

  #apply(step: Step, on: boolean, now: number): void {
    const { brakes, holdBackBodies } = this.#parts;
    if (step === "shrink_rings") brakes.shrinkRings(on);
    else if (step === "widen_coalescing") brakes.widenCoalescing(on);
    // A round later: what the steps before it free has to show first.
    else if (step === "drop_slowest") this.#droppedAt = now;
    else if (step === "refuse_new") {
      brakes.refuseNew(on);
      holdBackBodies?.(on);
    }
  }

  #dropSlowest(now: number): void {
    this.#droppedAt = now;
    const dropped = this.#parts.brakes.dropSlowest(DROPPED_SHARE);
    if (dropped > 0) this.#parts.log.warn({ dropped }, "overload: the slowest streams were dropped with a gap");
  }

  #collect(now: number): void {
    const began = performance.now();
    collectGarbage();
    const tookMs = performance.now() - began;
    this.#collectAt = now + Math.max(COLLECT_MS, tookMs * COLLECT_FACTOR);
    // The pause was ours.
    this.#lookedAt += tookMs;
  }
}

const LOOK_MS = 250;
/** Between two rounds of dropping: what a round frees has to show before the next. */
const ROUND_MS = 2_000;
const DROPPED_SHARE = 0.01;
/** Between two collections; and they take a hundredth of the time at most. */
const COLLECT_MS = 10_000;
const COLLECT_FACTOR = 100;

const MESSAGES: Readonly<Record<Step, { readonly entered: string; readonly left: string }>> = {
  shrink_rings: { entered: "rings are made smaller", left: "rings may have their full size again" },
  widen_coalescing: { entered: "events wait longer to leave together", left: "events leave as soon as before" },
  drop_slowest: { entered: "the slowest streams will be dropped", left: "no more streams are dropped" },
  refuse_new: { entered: "new streams are refused", left: "new streams are taken again" },
  readiness_off: { entered: "not ready for new connections", left: "ready for new connections again" },
};
