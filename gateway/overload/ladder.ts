/**
 * Which steps against overload are taken, by how much of memory, loop and connections is used. Pure: pressure and time in, transitions
 * out. A signal takes only the steps that help against it (docs/architecture.md has the table and the reasons).
 */

/** In the order in which they hurt; a step's level is its place, from 1. */
export const STEPS = ["shrink_rings", "widen_coalescing", "drop_slowest", "refuse_new", "readiness_off"] as const;
export type Step = (typeof STEPS)[number];

export const SIGNALS = ["memory", "loop_lag", "connections"] as const;
export type Signal = (typeof SIGNALS)[number];

/** Of each signal, how much of what there is is used: 1 is all. */
export type Pressure = Readonly<Record<Signal, number>>;

export interface Transition {
  readonly step: Step;
  /** False when the step is left. */
  readonly entered: boolean;
  /** What the step is taken for, or was held for until now. */
  readonly signal: Signal;
  readonly share: number;
}

/** From which share on a signal takes a step. */
export const THRESHOLDS: Readonly<Record<Signal, Readonly<Partial<Record<Step, number>>>>> = {
  memory: { shrink_rings: 0.7, widen_coalescing: 0.8, drop_slowest: 0.85, refuse_new: 0.9, readiness_off: 0.95 },
  loop_lag: { widen_coalescing: 0.5, refuse_new: 1, readiness_off: 2 },
  connections: { readiness_off: 0.95 },
};

/** A step is left when the share has been so far below its threshold for so long. */
export const HYSTERESIS = 0.05;
export const CALM_MS = 5_000;

/** The least share of memory that any step is taken or held for: below it there is nothing to look at closely. */
export const LEAST_MEMORY_SHARE = THRESHOLDS.memory.shrink_rings! - HYSTERESIS;

export class Ladder {
  readonly #rungs = STEPS.map((step) => new Rung(step));

  /** Number of the highest step taken, 0 for none. */
  get level(): number {
    return this.#rungs.findLastIndex(({ heldBy }) => heldBy !== null) + 1;
  }

  /** What a step is taken for; null when it is not taken. */
  heldBy(step: Step): Signal | null {
    return this.#rungs[STEPS.indexOf(step)]!.heldBy;
  }

  /** What changes, steps up first, from the lowest; then steps down, from the highest. `now`: milliseconds that only rise. */
  update(pressure: Pressure, now: number): Transition[] {
    const up: Transition[] = [];
    const down: Transition[] = [];
    for (const rung of this.#rungs) {
      const transition = rung.update(pressure, now);
      if (transition?.entered === true) up.push(transition);
      else if (transition !== null) down.unshift(transition);
    }
    return [...up, ...down];
  }
}

class Rung {
  readonly #step: Step;
  readonly #holds: Hold[];

  constructor(step: Step) {
    this.#step = step;
    this.#holds = SIGNALS.flatMap((signal) => {
      const threshold = THRESHOLDS[signal][step];
      return threshold === undefined ? [] : [new Hold(signal, threshold)];
    });
  }

  get heldBy(): Signal | null {
    return this.#holds.find(({ isOn }) => isOn)?.signal ?? null;
  }

  update(pressure: Pressure, now: number): Transition | null {
    const before = this.heldBy;
    for (const hold of this.#holds) hold.update(pressure[hold.signal], now);
    const after = this.heldBy;
    const signal = after ?? before;
    if (signal === null || (before === null) === (after === null)) return null;
    return { step: this.#step, entered: after !== null, signal, share: pressure[signal] };
  }
}

/** One signal's hold on one step. */
class Hold {
  readonly signal: Signal;
  readonly #threshold: number;
  #calmSince: number | null = null;
  isOn = false;

  constructor(signal: Signal, threshold: number) {
    this.signal = signal;
    this.#threshold = threshold;
  }

  update(share: number, now: number): void {
    if (share >= this.#threshold) this.isOn = true;
    if (share >= this.#threshold - HYSTERESIS) this.#calmSince = null;
    else this.#calmSince ??= now;
    if (this.#calmSince !== null && now - this.#calmSince >= CALM_MS) this.isOn = false;
  }
}
