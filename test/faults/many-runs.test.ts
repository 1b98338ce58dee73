/** 2,000 watched runs on a cluster of three masters and three replicas cost a few connections, and no redirections. */
import { Cluster } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { streamKey } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import type { RedisServer } from "../support/redis-servers.ts";
import { PacedReader } from "./paced-reader.ts";
import { batch, publishSurely } from "./producer.ts";

const RUNS = 2_000;
const AT_ONCE = 50;
/** Read, wake and command connection; one more may be asking for the topology at the moment. */
const CONNECTIONS = 4;

let cluster: RedisCluster;
let gateway: Gateway;

beforeAll(async () => {
  cluster = await startRedisCluster();
  gateway = await startGateway({ broker: "redis", redisUrl: cluster.url, flags: ["--heartbeat-seconds", "30"] });
});
afterAll(async () => {
  await gateway?.stop();
  await cluster?.stop();
});

test(`${RUNS} watched runs: one event to each arrives, whoever published it`, { timeout: 90_000 }, async () => {
  const runs = Array.from({ length: RUNS }, (_, index) => `run-${index}`);
  const readers: PacedReader[] = [];
  await inTurns(runs, async (runId) => {
    const reader = await PacedReader.open(gateway, runId);
    readers.push(reader.read());
  });
  expect(readers.filter(({ status }) => status !== 200)).toEqual([]);
  await gateway.waitForMetric("penstock_runs", (count) => count === RUNS);

  await inTurns(runs, (runId) => publishSurely(() => gateway, runId, batch(0, 1)).then(() => {}));
  await everyoneHas(readers, 1);
  // Now as another gateway, or ZenML's server, would: only tracking, or the look every 5 seconds, can tell.
  await publishElsewhere(cluster, runs);
  await everyoneHas(readers, 2);
  for (const reader of readers) expect(reader).toMatchObject({ numbers: [0, 1], gaps: [], faults: [], isOver: false });

  for (const node of cluster.nodes) {
    expect((await ourConnections(node)).length).toBeLessThanOrEqual(CONNECTIONS);
    const errors = await errorCounts(node);
    expect(errors.get("CROSSSLOT") ?? 0).toBe(0);
    // Ours in this test are made for the right master; the topology is known before the first command.
    expect(errors.get("MOVED") ?? 0).toBeLessThan(10);
  }
  const masters = await cluster.masters();
  expect(masters).toHaveLength(3);
  for (const master of masters) {
    const names = (await ourConnections(master)).map((line) => /name=(\S+)/.exec(line)?.[1]);
    expect(names).toEqual(expect.arrayContaining(["penstock-read", "penstock-wake", "penstock-command"]));
  }
  for (const reader of readers) reader.close();
});

async function inTurns(runs: readonly string[], work: (runId: string) => Promise<void>): Promise<void> {
  for (let at = 0; at < runs.length; at += AT_ONCE) await Promise.all(runs.slice(at, at + AT_ONCE).map(work));
}

async function everyoneHas(readers: readonly PacedReader[], count: number): Promise<void> {
  for (const reader of readers) await reader.until(`${count} events`, () => reader.numbers.length >= count, 20_000);
}

/** Adds the event 1 to each run by Redis' own protocol, each at the master of its slot. */
async function publishElsewhere(cluster: RedisCluster, runs: readonly string[]): Promise<void> {
  const producer = new Cluster([{ host: "127.0.0.1", port: cluster.nodes[0]!.port }]);
  const fields = { step_run_id: null, step_name: null, kind: "token", correlation_id: null, index: 1, payload: { n: 1 } };
  const entryOf = (runId: string) => JSON.stringify({ type: "event", event: { pipeline_run_id: runId, ...fields } });
  await Promise.all(runs.map((runId) => producer.xadd(streamKey(runId), "*", "p", entryOf(runId))));
  producer.disconnect();
}

async function ourConnections(node: RedisServer): Promise<string[]> {
  return (await node.cli("CLIENT", "LIST")).split("\n").filter((line) => line.includes("name=penstock-"));
}

/** How often each error was answered, by its first word. */
async function errorCounts(node: RedisServer): Promise<Map<string, number>> {
  const lines = (await node.cli("INFO", "errorstats")).matchAll(/^errorstat_(\w+):count=(\d+)/gm);
  return new Map(Array.from(lines, ([, name, count]) => [name!, Number(count)]));
}
