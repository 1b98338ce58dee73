/** R04: events added between two reads of the tail are seen. The classic fault asks for "$" again after an empty wait. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { entryOf, streamKey } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { LineProcess } from "../support/line-process.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";

/** The case's 300 events, as runs beside each other so that the test stays short. */
const RUNS = 20;
const EVENTS_A_RUN = 15;
const READER = { name: "reader", password: "secret" };

describe.each([
  // Pauses around the time after which an idle reader looks again: none for tracking, so the case's own 150 to 250 ms.
  { mode: "tracking", acl: "+@all", pauseMs: 200 },
  // Half the shortest socket timeout, 500 ms, is how long a blocked read waits where tracking is refused.
  { mode: "blocking or polling", acl: "+@all -client|tracking", pauseMs: 500 },
])("R04: pauses around the block time, read by $mode", ({ mode, acl, pauseMs }) => {
  let redis: RedisServer;
  let gateway: Gateway;
  let monitor: LineProcess<string>;

  beforeAll(async () => {
    redis = await startRedis();
    await redis.cli("ACL", "SETUSER", READER.name, "on", `>${READER.password}`, "~*", "&*", ...acl.split(" "));
    const redisUrl = `redis://${READER.name}:${READER.password}@127.0.0.1:${redis.port}/0`;
    gateway = await startGateway({ broker: "redis", redisUrl, env: { ZENML_REDIS_SOCKET_TIMEOUT: "1" } });
    monitor = new LineProcess("redis-cli", ["-p", String(redis.port), "MONITOR"], (line) => line);
    await monitor.untilCount(1);
  });
  afterAll(async () => {
    await gateway?.stop();
    await monitor?.stop();
    await redis?.stop();
  });

  it("hands over all 300 in order, to readers that came before their key", async () => {
    const publisher = new Redis(redis.port, "127.0.0.1");
    const runs = Array.from({ length: RUNS }, (_, index) => `4f4f4f4f-0000-4000-8000-${String(index).padStart(12, "0")}`);
    const readers = await Promise.all(runs.map((runId) => gateway.stream(runId)));
    await Promise.all(runs.map((runId, index) => publishSlowly(publisher, runId, index + 1, pauseMs)));
    await Promise.all(readers.map((reader) => reader.waitForPublished(EVENTS_A_RUN)));
    for (const reader of readers) {
      expect(reader.payloads).toEqual(Array.from({ length: EVENTS_A_RUN }, (_, n) => ({ text: `t${n}` })));
      expect(reader.gaps).toEqual([]);
      reader.close();
    }
    publisher.disconnect();
    const readMode = [...(await gateway.metrics())].find(
      ([name, value]) => name.startsWith("penstock_redis_read_mode") && value === 1,
    );
    expect(readMode?.[0].includes("tracking")).toBe(mode === "tracking");
  });

  it("never asks for the tail by $ twice", () => {
    const reads = monitor.values.filter((line) => /"xread"/i.test(line));
    expect(reads.length).toBeGreaterThan(RUNS);
    expect(reads.filter((line) => line.includes('"$"'))).toEqual([]);
  });
});

async function publishSlowly(publisher: Redis, runId: string, seed: number, pauseMs: number): Promise<void> {
  const random = mulberry32(seed);
  for (let n = 0; n < EVENTS_A_RUN; n++) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs - 50 + random() * 100));
    await publisher.xadd(streamKey(runId), "*", "p", entryOf(runId, n));
  }
}

/** A small generator with a fixed seed (Tommy Ettinger's mulberry32), so that each run pauses alike. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
