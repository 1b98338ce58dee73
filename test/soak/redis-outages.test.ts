/** Redis away for as long as the design says: the long form of test/redis/outage.test.ts, with many runs and writers that never stop. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { frames, keyOf, Recorder, startBroker, type TestBroker } from "../redis/redis-broker.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";

const RUNS = 200;
const TIMEOUT_SECONDS = 2;

interface Run {
  readonly runId: string;
  readonly reader: Recorder;
}

async function watchRuns(tested: TestBroker): Promise<Run[]> {
  const runs = Array.from({ length: RUNS }, () => ({ runId: randomUUID(), reader: new Recorder() }));
  for (const { runId, reader } of runs) tested.broker.watch(runId, reader);
  for (const { reader } of runs) await reader.until("the tail", () => reader.tail !== null);
  return runs;
}

/** Publishes to all runs until it is stopped; returns how long the slowest answer took. */
function keepPublishing(tested: TestBroker, runs: readonly Run[]): { stop(): Promise<number> } {
  let isStopped = false;
  let slowestMs = 0;
  const writers = runs.map(async ({ runId }, index) => {
    for (let number = 0; !isStopped; number++) {
      const started = performance.now();
      await tested.broker.publish({ runId, entries: frames(1, number), idempotency: null }).catch(() => {});
      slowestMs = Math.max(slowestMs, performance.now() - started);
      await new Promise((resolve) => setTimeout(resolve, 500 + (index % 100)));
    }
  });
  return {
    async stop() {
      isStopped = true;
      await Promise.all(writers);
      return slowestMs;
    },
  };
}

/** Everything that Redis kept was heard, once, in order, with one outage at most and no gap. */
async function expectWhole(runs: readonly Run[], read: (key: string) => Promise<string>): Promise<void> {
  for (const { runId, reader } of runs) {
    const kept = (await read(keyOf(runId))).split("\n").filter((line) => /^\d+-\d+$/.test(line));
    await reader.hear(kept.length, 60_000);
    expect(reader.ids).toEqual(kept);
    expect(reader.gaps).toEqual([]);
    expect(reader.faults).toEqual([]);
    expect(reader.calls.filter((call) => call === "outage").length).toBeLessThanOrEqual(1);
  }
}

describe("a standalone Redis", () => {
  let server: RedisServer;
  let tested: TestBroker;
  beforeAll(async () => {
    server = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    tested = await startBroker({ url: server.url, socketTimeoutSeconds: TIMEOUT_SECONDS });
  });
  afterAll(async () => {
    await tested?.close();
    await server?.stop();
  });

  test.each<[string, () => unknown, () => unknown, number]>([
    ["stopped", () => server.halt(), () => server.restart(), 60],
    ["killed", () => server.kill9(), () => server.restart(), 30],
    ["stopped in its tracks", () => server.pause(), () => server.resume(), 30],
  ])(
    "%s for a while",
    async (_, begin, end, seconds) => {
      const runs = await watchRuns(tested);
      const writers = keepPublishing(tested, runs);
      await waitFor("all runs are written to", () => runs.every(({ reader }) => reader.entries.length > 2));
      const lines = tested.log.lines.length;
      await begin();
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      await end();
      for (const { reader } of runs) await reader.until("the recovery", () => reader.calls.includes("recovered"), 60_000);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      expect(await writers.stop()).toBeLessThan(TIMEOUT_SECONDS * 1_000 + 1_000);
      await expectWhole(runs, (key) => server.cli("XRANGE", key, "-", "+"));
      expect(tested.log.lines.length - lines).toBeLessThanOrEqual(2);
    },
    240_000,
  );
});

describe("a cluster", () => {
  let cluster: RedisCluster;
  let tested: TestBroker;
  beforeAll(async () => {
    cluster = await startRedisCluster({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    tested = await startBroker({ url: cluster.url, socketTimeoutSeconds: TIMEOUT_SECONDS });
  });
  afterAll(async () => {
    await tested?.close();
    await cluster?.stop();
  });

  test("each master killed in turn under load, and brought back as a replica", async () => {
    const runs = await watchRuns(tested);
    const writers = keepPublishing(tested, runs);
    for (let round = 0; round < 3; round++) {
      await waitFor("all runs are written to", () => runs.every(({ reader }) => reader.entries.length > 2 + round * 5), 60_000);
      await cluster.settled();
      const victim = (await cluster.masters())[round]!;
      await victim.kill9();
      await waitFor("another master has its slots", async () => (await cluster.masters()).length === 3, 60_000);
      await victim.restart();
    }
    await cluster.settled();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    await writers.stop();
    for (const { runId, reader } of runs) {
      const kept = (await cluster.cli("XRANGE", keyOf(runId), "-", "+")).split("\n").filter((line) => /^\d+-\d+$/.test(line));
      await reader.until("the newest entry", () => reader.ids.at(-1) === kept.at(-1), 60_000);
      // A failover may lose what was not replicated yet; then, and only then, there is a rollback.
      const missing = kept.filter((id) => !reader.ids.includes(id));
      expect(missing).toEqual([]);
      const lost = reader.ids.some((id) => !kept.includes(id));
      expect(reader.gaps.map(({ gap }) => gap.reason)).toEqual(lost ? expect.arrayContaining(["rollback"]) : []);
      expect(reader.faults).toEqual([]);
    }
  }, 300_000);
});
