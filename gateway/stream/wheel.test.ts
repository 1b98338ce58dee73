import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Wheel, type WheelNode } from "./wheel.ts";

interface Node extends WheelNode {
  readonly name: number;
}

function node(name: number): Node {
  return { name, wheelNext: null, wheelPrevious: null, wheelTick: -1 };
}

describe("the timing wheel", () => {
  it("visits each node once, at the first turn at or behind its time, however far off that is", () => {
    const wheel = new Wheel<Node>(10, 8, 0);
    wheel.schedule(node(1), 25);
    wheel.schedule(node(2), 1_000);
    const visits: [number, number][] = [];
    for (let now = 0; now <= 1_100; now += 5) wheel.advance(now, ({ name }) => visits.push([name, now]));
    expect(visits).toEqual([
      [1, 30],
      [2, 1_000],
    ]);
    expect(wheel.size).toBe(0);
  });

  it("catches up with a clock that has jumped", () => {
    const wheel = new Wheel<Node>(10, 8, 0);
    for (let name = 0; name < 20; name++) wheel.schedule(node(name), name * 17);
    const visited: number[] = [];
    wheel.advance(10_000, ({ name }) => visited.push(name));
    expect(visited.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, name) => name));
  });

  it("lets a visit schedule again and cancel others", () => {
    const wheel = new Wheel<Node>(10, 8, 0);
    const [first, second] = [node(1), node(2)];
    wheel.schedule(second, 10);
    wheel.schedule(first, 10);
    const visited: number[] = [];
    wheel.advance(10, (visit) => {
      visited.push(visit.name);
      wheel.cancel(visit === first ? second : first);
      wheel.schedule(visit, 30);
    });
    expect(visited).toHaveLength(1);
    expect(wheel.size).toBe(1);
  });

  it("agrees with a sorted list for any schedule, cancel and step of the clock", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("schedule" as const), name: fc.nat(5), delay: fc.nat(500) }),
      fc.record({ do: fc.constant("cancel" as const), name: fc.nat(5) }),
      fc.record({ do: fc.constant("wait" as const), ms: fc.nat(300) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const wheel = new Wheel<Node>(10, 8, 0);
        const nodes = Array.from({ length: 6 }, (_, name) => node(name));
        const due = new Map<number, number>();
        let now = 0;
        for (const action of steps) {
          if (action.do === "schedule") {
            wheel.schedule(nodes[action.name]!, now + action.delay);
            due.set(action.name, Math.max(Math.floor(now / 10) * 10 + 10, Math.ceil((now + action.delay) / 10) * 10));
          } else if (action.do === "cancel") {
            wheel.cancel(nodes[action.name]!);
            due.delete(action.name);
          } else {
            now += action.ms;
            const visited: number[] = [];
            wheel.advance(now, ({ name }) => visited.push(name));
            const expected = [...due].filter(([, at]) => at <= now).map(([name]) => name);
            for (const name of expected) due.delete(name);
            expect(visited.sort()).toEqual(expected.sort());
          }
          expect(wheel.size).toBe(due.size);
        }
      }),
    );
  });
});
