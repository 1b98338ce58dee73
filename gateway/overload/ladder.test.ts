import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CALM_MS, HYSTERESIS, Ladder, type Pressure, SIGNALS, STEPS, THRESHOLDS } from "./ladder.ts";

const NOTHING: Pressure = { memory: 0, loop_lag: 0, connections: 0 };

/** The transitions of one look, as `+step` and `-step`. */
function look(ladder: Ladder, pressure: Partial<Pressure>, now: number): string[] {
  return ladder.update({ ...NOTHING, ...pressure }, now).map(({ step, entered }) => `${entered ? "+" : "-"}${step}`);
}

describe("memory", () => {
  test("takes one step after the other, each at its share, at once", () => {
    const ladder = new Ladder();
    expect(look(ladder, { memory: 0.69 }, 0)).toEqual([]);
    expect(look(ladder, { memory: 0.7 }, 1)).toEqual(["+shrink_rings"]);
    expect(look(ladder, { memory: 0.84 }, 2)).toEqual(["+widen_coalescing"]);
    expect(look(ladder, { memory: 0.85 }, 3)).toEqual(["+drop_slowest"]);
    expect(look(ladder, { memory: 0.94 }, 4)).toEqual(["+refuse_new"]);
    expect(ladder.level).toBe(4);
    expect(look(ladder, { memory: 1.2 }, 5)).toEqual(["+readiness_off"]);
    expect(ladder.level).toBe(5);
  });

  test("that jumps takes all steps in one look, the mildest first, and leaves them the hardest first", () => {
    const ladder = new Ladder();
    expect(look(ladder, { memory: 1 }, 0)).toEqual(STEPS.map((step) => `+${step}`));
    expect(look(ladder, {}, 1)).toEqual([]);
    expect(look(ladder, {}, 1 + CALM_MS)).toEqual(STEPS.toReversed().map((step) => `-${step}`));
    expect(ladder.level).toBe(0);
  });
});

describe("a step", () => {
  test("is left when the share has been five points below its threshold for five seconds, not before", () => {
    const ladder = new Ladder();
    look(ladder, { memory: 0.72 }, 0);
    expect(look(ladder, { memory: 0.66 }, 10_000)).toEqual([]);
    expect(look(ladder, { memory: 0.64 }, 20_000)).toEqual([]);
    expect(look(ladder, { memory: 0.66 }, 24_999)).toEqual([]);
    expect(look(ladder, { memory: 0.64 }, 25_000)).toEqual([]);
    expect(look(ladder, { memory: 0.64 }, 29_999)).toEqual([]);
    expect(look(ladder, { memory: 0.64 }, 30_000)).toEqual(["-shrink_rings"]);
  });

  test("tells what it is taken for, and is held as long as one signal holds it", () => {
    const ladder = new Ladder();
    const lag = ladder.update({ ...NOTHING, loop_lag: 1.5 }, 0);
    expect(lag).toEqual([
      { step: "widen_coalescing", entered: true, signal: "loop_lag", share: 1.5 },
      { step: "refuse_new", entered: true, signal: "loop_lag", share: 1.5 },
    ]);
    expect(look(ladder, { memory: 0.92 }, 1)).toEqual(["+shrink_rings", "+drop_slowest"]);
    expect(look(ladder, { memory: 0.92 }, 1 + CALM_MS)).toEqual([]);
    expect(ladder.heldBy("refuse_new")).toBe("memory");
    look(ladder, { memory: 0.1 }, 6_000);
    expect(ladder.update({ ...NOTHING, memory: 0.1 }, 6_000 + CALM_MS).at(0)).toEqual({
      step: "refuse_new",
      entered: false,
      signal: "memory",
      share: 0.1,
    });
  });
});

test("a signal takes only the steps that help against it", () => {
  expect(look(new Ladder(), { loop_lag: 9 }, 0)).toEqual(["+widen_coalescing", "+refuse_new", "+readiness_off"]);
  expect(look(new Ladder(), { connections: 1 }, 0)).toEqual(["+readiness_off"]);
  expect(look(new Ladder(), { connections: 0.94 }, 0)).toEqual([]);
});

describe("whatever the pressure does", () => {
  const anyPressure = fc.record({
    memory: fc.double({ min: 0, max: 1.5, noNaN: true }),
    loop_lag: fc.double({ min: 0, max: 3, noNaN: true }),
    connections: fc.double({ min: 0, max: 1.1, noNaN: true }),
  });
  const anyLooks = fc.array(fc.tuple(fc.integer({ min: 1, max: 3_000 }), anyPressure), { maxLength: 60 });

  test("a step is on from its threshold, off in long calm, and what is reported is what is so", () => {
    fc.assert(
      fc.property(anyLooks, (looks) => {
        const ladder = new Ladder();
        const taken = new Set<string>();
        const history: { now: number; pressure: Pressure }[] = [];
        let now = 0;
        for (const [pause, pressure] of looks) {
          now += pause;
          history.push({ now, pressure });
          for (const { step, entered } of ladder.update(pressure, now)) {
            expect(taken.has(step), `${step} changes`).toBe(!entered);
            if (entered) taken.add(step);
            else taken.delete(step);
          }
          for (const step of STEPS) {
            expect(ladder.heldBy(step) !== null).toBe(taken.has(step));
            const limits = SIGNALS.flatMap((signal) => {
              const threshold = THRESHOLDS[signal][step];
              return threshold === undefined ? [] : [{ signal, threshold }];
            });
            if (limits.some(({ signal, threshold }) => pressure[signal] >= threshold)) expect(taken.has(step)).toBe(true);
            const calmSince = history.findLast((past) =>
              limits.some(({ signal, threshold }) => past.pressure[signal] >= threshold - HYSTERESIS),
            );
            const first = history[calmSince === undefined ? 0 : history.indexOf(calmSince) + 1];
            if (first !== undefined && now - first.now >= CALM_MS) expect(taken.has(step)).toBe(false);
          }
          expect(ladder.level).toBe(Math.max(0, ...STEPS.map((step, index) => (taken.has(step) ? index + 1 : 0))));
        }
      }),
    );
  });

  test("what memory takes is never a harder step without the milder ones", () => {
    fc.assert(
      fc.property(anyLooks, (looks) => {
        const ladder = new Ladder();
        let now = 0;
        for (const [pause, { memory }] of looks) {
          now += pause;
          ladder.update({ ...NOTHING, memory }, now);
          expect(STEPS.map((step) => ladder.heldBy(step) !== null)).toEqual(STEPS.map((_, index) => index < ladder.level));
        }
      }),
    );
  });

  test("a share that swings by less than the hysteresis changes a step once at most", () => {
    const swing = fc.double({ min: -HYSTERESIS / 2, max: HYSTERESIS / 2 - 0.001, noNaN: true });
    fc.assert(
      fc.property(fc.double({ min: 0.5, max: 1, noNaN: true }), fc.array(swing, { maxLength: 60 }), (middle, swings) => {
        const ladder = new Ladder();
        const changes = swings.flatMap((by, index) => look(ladder, { memory: middle + by }, index * 4_000));
        expect(new Set(changes).size).toBe(changes.length);
        expect(changes.every((change) => change.startsWith("+"))).toBe(true);
      }),
    );
  });
});
