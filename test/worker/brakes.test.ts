/** What the run table does about overload: rings, coalescing, slow streams, new streams. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { OverloadedError } from "../../gateway/overload/overloaded-error.ts";
import { waitFor } from "../support/wait-for.ts";
import { Client, TableWorld } from "./table-world.ts";

let world: TableWorld;

afterEach(async () => {
  vi.restoreAllMocks();
  await world.close();
});

/** Sets the clock of the table on by so much. */
function later(milliseconds: number): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + milliseconds);
}

function lastIdOf(client: Client): string {
  return [...client.text.matchAll(/^id: (.*)$/gm)].at(-1)![1]!;
}

function more(client: Client): number {
  return client.kinds.filter((kind) => kind === "more").length;
}

describe("rings under overload", () => {
  it("hold half of what they held, the coldest giving way, and who needs what they let go of gets it from history", async () => {
    world = new TableWorld({ ringTotalBytes: 1024 * 1024 });
    const payload = "x".repeat(8_000);
    for (const run of ["cold", "hot"]) {
      const reader = world.open(run);
      await world.publish(run, Array(40).fill("token"), payload);
      await waitFor("it has all", () => reader.kinds.length === 40);
    }
    const held = world.table.ringBytes;
    world.table.shrinkRings(true);
    expect(world.table.ringBytes).toBeLessThanOrEqual(held / 2);
    const pageReads = world.pageReads;
    const back = world.open("cold");
    await waitFor("all from history", () => back.kinds.length === 40);
    expect(world.pageReads).toBeGreaterThan(pageReads);

    const reader = world.open("hot", { tail: 0 });
    await world.publish("hot", Array(60).fill("more"), payload);
    await waitFor("it goes on", () => more(reader) === 60);
    expect(world.table.ringBytes, "they stay small").toBeLessThanOrEqual(held / 2);
    world.table.shrinkRings(false);
    await world.publish("hot", Array(60).fill("more"), payload);
    await waitFor("and on", () => more(reader) === 120);
    expect(world.table.ringBytes, "and grow again").toBeGreaterThan(held / 2);
  });

  it("that hold little keep enough to live on", async () => {
    world = new TableWorld({ ringTotalBytes: 1024 * 1024 });
    const reader = world.open("run");
    world.table.shrinkRings(true);
    await world.publish("run", Array(40).fill("token"), "x".repeat(1_000));
    await waitFor("it has all", () => reader.kinds.length === 40);
    expect(world.pageReads).toBe(0);
  });
});

it("events wait longer to leave together, and as long as before when that is over", async () => {
  world = new TableWorld({ coalesceMs: 200 });
  const reader = world.open("run");
  /** How long an event waits that comes right behind another. */
  const wait = async (): Promise<number> => {
    const before = reader.kinds.length;
    await world.publish("run", ["first"]);
    await waitFor("the first", () => reader.kinds.length > before);
    const began = performance.now();
    await world.publish("run", ["second"]);
    await waitFor("the second", () => reader.kinds.length > before + 1);
    return performance.now() - began;
  };
  world.table.widenCoalescing(true);
  expect(await wait()).toBeGreaterThan(400);
  world.table.widenCoalescing(false);
  await waitFor("quiet", () => new Promise((resolve) => setTimeout(() => resolve(true), 250)));
  const waits: number[] = [];
  for (let n = 0; n < 3; n++) waits.push(await wait());
  expect(Math.min(...waits)).toBeLessThan(400);
});

describe("the slowest streams", () => {
  it("are those that are full longest: they are told, let go of, and resume where they stopped", async () => {
    world = new TableWorld();
    const healthy = world.open("run");
    const slow: Client[] = [];
    for (let n = 0; n < 3; n++) {
      const client = new Client();
      client.takes = false;
      slow.push(world.open("run", { sink: client }));
      await world.publish("run", [`${n}`]);
      await waitFor("it is full", () => client.writes === 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(world.table.blocked).toBe(3);
    expect(world.table.dropSlowest(0.01), "full for a moment only").toBe(0);
    later(1_000);
    expect(world.table.dropSlowest(0.01)).toBe(1);
    expect(slow.map(({ ended }) => ended)).toEqual([true, false, false]);
    expect(slow[0]!.kinds).toEqual(["0", "gap"]);
    const [, gap] = /^event: gap\ndata: (.*)\n\nretry: \d+\n/m.exec(slow[0]!.text)!;
    expect(JSON.parse(gap!)).toEqual({ reason: "overflow", from: lastIdOf(slow[0]!), to: null, missed: null });
    expect(world.closed).toEqual(["overload"]);
    expect(world.table.dropSlowest(0.5)).toBe(2);
    expect(slow.every(({ ended }) => ended)).toBe(true);
    expect(healthy.ended).toBe(false);
    const back = world.open("run", { position: { id: lastIdOf(slow[0]!), exact: true } });
    await waitFor("the rest", () => back.kinds.length === 2);
    expect(back.kinds).toEqual(["1", "2"]);
  });
});

it("new streams are refused, with a time of their own to come back, until that is over; those that are open go on", async () => {
  world = new TableWorld();
  const reader = world.open("run");
  world.table.refuseNew(true);
  const times = new Set<number>();
  for (let n = 0; n < 200; n++) {
    try {
      await world.table.claim("run");
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(OverloadedError);
      times.add((error as OverloadedError).retryAfterSeconds);
    }
  }
  expect([...times].sort()).toEqual([1, 2, 3, 4, 5]);
  await world.publish("run", ["token"]);
  await waitFor("it goes on", () => reader.kinds.length === 1);
  world.table.refuseNew(false);
  world.open("run");
  expect(world.table.connections).toBe(2);
});
