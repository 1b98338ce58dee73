/** A reader that falls off the ring, by each policy of `--slow-consumer`, through real sockets. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { type FollowedGap, Follower } from "./follower.ts";
import { PacedReader } from "./paced-reader.ts";
import { batch, publishSurely } from "./producer.ts";

/** 30 MB: more than both kernels' buffers hold for one connection, and hundreds of times the ring. */
const EVENTS = 600;
const BATCH = 20;
const PADDING = 50_000;
const RING_EVENTS = 32;

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis?.stop());

describe.each(["replay", "gap", "disconnect"] as const)("--slow-consumer %s", (policy) => {
  let gateway: Gateway;

  beforeAll(async () => {
    const flags = ["--slow-consumer", policy, "--ring-events", `${RING_EVENTS}`];
    gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags });
  });
  afterAll(() => gateway?.stop());

  /** A reader that pauses while 30 MB are published, and reads again then; its neighbour reads all the time. */
  const fallBehind = async (runId: string, query = "") => {
    const neighbour = new Follower(runId, () => gateway.url);
    const slow = (await PacedReader.open(gateway, runId, { query })).read();
    await publishSurely(() => gateway, runId, batch(0, 2, { kindOf }));
    await slow.until("the first event", () => slow.numbers.length > 0);
    slow.pause();
    for (let first = 2; first < EVENTS; first += BATCH) {
      const count = Math.min(BATCH, EVENTS - first);
      await publishSurely(() => gateway, runId, batch(first, count, { padding: PADDING, kindOf }));
    }
    await neighbour.untilAll(EVENTS);
    expect(neighbour).toMatchObject({ gaps: [], faults: [], connects: 1 });
    slow.read();
    return { slow, neighbour };
  };

  if (policy === "replay") {
    test("it is fed from history, and misses nothing", async () => {
      const { slow, neighbour } = await fallBehind(policy);
      await slow.until("all events", () => slow.numbers.length === EVENTS);
      expect(slow).toMatchObject({ numbers: numbers(0, EVENTS), gaps: [], faults: [], isOver: false });
      expect((await gateway.metrics()).get("penstock_replayed_events_total")).toBeGreaterThan(RING_EVENTS);
      slow.close();
      await neighbour.stop();
    });
  } else if (policy === "gap") {
    test("it is skipped ahead, and told exactly what it missed", async () => {
      const { slow, neighbour } = await fallBehind(policy);
      await slow.until("the newest event", () => slow.numbers.at(-1) === EVENTS - 1);
      expect(slow).toMatchObject({ faults: [], isOver: false });
      expect(slow.gaps.length).toBeGreaterThan(0);
      const missed = slow.gaps.reduce((sum, gap) => sum + gap.missed!, 0);
      expect(slow.numbers.length + missed).toBe(EVENTS);
      expect(slow.numbers).toEqual([...slow.numbers].sort((a, b) => a - b));
      for (const gap of slow.gaps) await expectTrueGap(gateway, policy, gap);
      await publishSurely(() => gateway, policy, batch(EVENTS, 1));
      await slow.until("the next event", () => slow.numbers.at(-1) === EVENTS);
      slow.close();
      await neighbour.stop();
    });

    test("a filtered one is told how many entries went by, whatever its filter", async () => {
      const runId = "filtered";
      const { slow, neighbour } = await fallBehind(runId, "?kinds=odd");
      await slow.until("the newest event", () => slow.numbers.at(-1) === EVENTS - 1);
      expect(slow).toMatchObject({ faults: [], isOver: false });
      expect(slow.numbers.filter((n) => kindOf(n) !== "odd")).toEqual([]);
      expect(slow.numbers.length).toBeLessThan(EVENTS / 2);
      expect(slow.gaps.length).toBeGreaterThan(0);
      for (const gap of slow.gaps) await expectTrueGap(gateway, runId, gap);
      slow.close();
      await neighbour.stop();
    });
  } else {
    test("its stream ends cleanly, and it comes back for the rest", async () => {
      const { slow, neighbour } = await fallBehind(policy);
      await slow.until("the end of the body", () => slow.isOver);
      expect(slow).toMatchObject({ isBroken: false, hasEnd: false, gaps: [], faults: [] });
      expect(slow.numbers).toEqual(numbers(0, slow.numbers.length));
      expect(slow.numbers.length).toBeLessThan(EVENTS);
      expect((await gateway.metrics()).get('penstock_connections_closed_total{reason="slow"}')).toBe(1);
      const back = (await PacedReader.open(gateway, policy, { lastEventId: slow.lastEventId })).read();
      await back.until("the rest", () => back.numbers.at(-1) === EVENTS - 1);
      expect(back).toMatchObject({ numbers: numbers(slow.numbers.length, EVENTS), gaps: [], faults: [] });
      back.close();
      await neighbour.stop();
    });
  }
});

function kindOf(n: number): string {
  return n % 2 === 1 ? "odd" : "even";
}

/** Its bounds lie on both sides of the hole: what history has between them is what was missed. */
async function expectTrueGap(gateway: Gateway, runId: string, { reason, from, to, missed }: FollowedGap): Promise<void> {
  expect(reason).toBe("overflow");
  expect(await countBetween(gateway, runId, from!, to!)).toBe(missed);
}

async function countBetween(gateway: Gateway, runId: string, from: string, to: string): Promise<number> {
  let count = 0;
  for (let since: string | null = from; since !== null; ) {
    const response = await fetch(gateway.runUrl(runId, `/events?limit=100&since=${since}`));
    const page = (await response.json()) as { events: { id: string }[]; next: string | null };
    const end = page.events.findIndex(({ id }) => id === to);
    if (end >= 0) return count + end;
    count += page.events.length;
    since = page.events.length === 0 ? null : page.next;
  }
  throw new Error(`history has no event ${to} behind ${from}`);
}

function numbers(first: number, end: number): number[] {
  return Array.from({ length: end - first }, (_, index) => first + index);
}
