/** Streams that have lived long enough, and runs that nobody watches for a while. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { streamKey } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { Follower } from "./follower.ts";
import { batch, publishSurely } from "./producer.ts";

let redis: RedisServer;
let gateway: Gateway;

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(() => gateway?.stop());
afterAll(() => redis?.stop());

async function start(flags: readonly string[]): Promise<void> {
  gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags });
}

describe("maximum age", () => {
  test("streams end cleanly at it, each at its own moment, and resuming loses nothing", { timeout: 60_000 }, async () => {
    // 1.5 s, 20 % more or less.
    await start(["--max-age-minutes", "0.025"]);
    const runId = "aged";
    const queries = ["", "?kinds=odd", "?kinds=never"];
    const followers = Array.from(
      { length: 30 },
      (_, index) => new Follower(runId, () => gateway.url, { query: queries[index % 3]! }),
    );
    for (const follower of followers) await follower.connected();
    let published = 0;
    const oldEnough = (): boolean => followers.every(({ cleanEnds }) => cleanEnds >= 2);
    for (; !oldEnough(); published += 5) {
      await publishSurely(() => gateway, runId, batch(published, 5, { kindOf: (n) => (n % 2 === 1 ? "odd" : "even") }));
      await waitFor("they have it", () => followers[0]!.numbers.length >= published);
    }
    const odd = Math.floor(published / 2);
    for (const [index, follower] of followers.entries()) {
      if (index % 3 === 0) await follower.untilAll(published);
      if (index % 3 === 1) await follower.until("all odd ones", () => follower.numbers.length === odd);
      if (index % 3 === 2) expect(follower.numbers).toEqual([]);
      expect(follower).toMatchObject({ gaps: [], faults: [], breaks: 0 });
      // One `retry:` at the beginning of each stream that is over, and one of its own at its end.
      expect(follower.retries.length).toBe(2 * follower.cleanEnds);
    }
    expect((await gateway.metrics()).get('penstock_connections_closed_total{reason="age"}')).toBeGreaterThanOrEqual(60);
    for (const follower of followers) await follower.stop();
  });
});

describe("idle grace", () => {
  const READERS = 50;

  test("readers that come back within it cost Redis no read", { timeout: 60_000 }, async () => {
    await start(["--idle-grace-seconds", "20"]);
    const runId = "kept";
    const url = () => gateway.url;
    const first = Array.from({ length: READERS }, () => new Follower(runId, url));
    await publishSurely(() => gateway, runId, batch(0, 100));
    for (const reader of first) await reader.untilAll(100);
    for (const reader of first) await reader.stop();
    await gateway.waitForMetric("penstock_connections", (count) => count === 0);
    // Published while nobody reads: it waits in the ring.
    await publishSurely(() => gateway, runId, batch(100, 10));
    // Longer than it takes to look for runs to let go.
    await pause(2_000);

    const began = performance.now();
    const before = await reads(redis);
    const back = first.map(({ lastEventId }) => new Follower(runId, url, { lastEventId }));
    for (const reader of back) await reader.until("the ten events", () => reader.numbers.length === 10);
    const after = await reads(redis);
    // The look at each watched run every 5 seconds goes on meanwhile, whoever comes.
    const sweeps = 1 + Math.ceil((performance.now() - began) / 5_000);
    expect(after.pages).toBe(before.pages);
    expect(after.reads - before.reads).toBeLessThanOrEqual(sweeps);
    expect((await gateway.metrics()).get('penstock_resumes_total{result="ring"}')).toBe(READERS);
    for (const reader of back) {
      expect(reader).toMatchObject({ gaps: [], faults: [] });
      await reader.stop();
    }
  });

  test("after it the run is let go, and a return finds what came meanwhile", { timeout: 60_000 }, async () => {
    await start(["--idle-grace-seconds", "0.5"]);
    const runId = "dropped";
    const reader = new Follower(runId, () => gateway.url);
    await publishSurely(() => gateway, runId, batch(0, 10));
    await reader.untilAll(10);
    await reader.stop();
    await gateway.waitForMetric("penstock_runs", (count) => count === 0);
    expect((await gateway.metrics()).get("penstock_ring_bytes")).toBe(0);
    await publishSurely(() => gateway, runId, batch(10, 990));
    expect(Number(await redis.cli("XLEN", streamKey(runId)))).toBe(1_000);
    const back = new Follower(runId, () => gateway.url, { lastEventId: reader.lastEventId });
    await back.until("all that it lacks", () => back.numbers.length === 990);
    expect(back.numbers[0]).toBe(10);
    expect(back).toMatchObject({ gaps: [], faults: [] });
    await back.stop();
  });
});

/** Commands that Redis has carried out to read streams: pages of history, and reads of watched runs. */
async function reads(server: RedisServer): Promise<{ pages: number; reads: number }> {
  const stats = await server.cli("INFO", "commandstats");
  const calls = (name: string): number => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, "m").exec(stats)?.[1] ?? 0);
  return { pages: calls("xrange") + calls("xrevrange") + calls("xinfo\\|stream"), reads: calls("xread") };
}
