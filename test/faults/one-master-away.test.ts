/** One master of three does not answer, and has no replica: only its own runs wait for it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { streamKey } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import type { RedisServer } from "../support/redis-servers.ts";
import { Follower } from "./follower.ts";
import { batch, publishSurely } from "./producer.ts";
import { untilReadiness } from "./readiness.ts";

const RECOVERY_MS = 45_000;
const RUNS = 6;

let cluster: RedisCluster;
let gateway: Gateway;

beforeAll(async () => {
  // No master is declared dead meanwhile: this is not about failover.
  const args = ["--cluster-require-full-coverage", "no"];
  cluster = await startRedisCluster({ masters: 3, replicas: 0, nodeTimeoutMs: 60_000, args });
  gateway = await startGateway({ broker: "redis", redisUrl: cluster.url, flags: ["--heartbeat-seconds", "1"] });
});
afterAll(async () => {
  await gateway?.stop();
  await cluster?.stop();
});

test("the runs of the others go on as if nothing were, and the gateway stays ready", { timeout: 90_000 }, async () => {
  const away = cluster.nodes[0]!;
  const healthy = await runsOn((node) => node !== away);
  const waiting = await runsOn((node) => node === away);
  const publish = async (runId: string, n: number): Promise<number> => (await gateway.publish(runId, batch(n, 1))).status;
  const follow = (runId: string) => new Follower(runId, () => gateway.url);
  const readers = { healthy: healthy.map(follow), waiting: waiting.map(follow) };
  const all = [...readers.healthy, ...readers.waiting];
  for (const runId of [...healthy, ...waiting]) expect(await publish(runId, 0)).toBe(200);
  for (const reader of all) await reader.untilAll(1);

  away.pause();
  for (const reader of readers.waiting) await reader.until("the outage", () => reader.gaps.length > 0, 10_000);
  expect(await Promise.all(waiting.map((runId) => publish(runId, 1_000)))).toEqual(waiting.map(() => 503));
  for (let n = 1; n <= 5; n++) {
    expect(await Promise.all(healthy.map((runId) => publish(runId, n)))).toEqual(healthy.map(() => 200));
    for (const reader of readers.healthy) await reader.untilAll(n + 1);
  }
  const beats = all.map(({ heartbeats }) => heartbeats);
  for (const [index, reader] of all.entries()) await reader.until("a heartbeat", () => reader.heartbeats > beats[index]!);
  // Were it not ready, all replicas would leave their service at once, and nobody could read the other runs either.
  await untilReadiness(gateway, 200, 2_000);

  away.resume();
  for (const [index, reader] of readers.waiting.entries()) {
    await publishSurely(() => gateway, waiting[index]!, batch(1, 1));
    await reader.until("the event behind the outage", () => reader.numbers.includes(1), RECOVERY_MS);
    expect(reader.reasons, reader.story()).toEqual(["outage"]);
  }
  for (const reader of readers.healthy) expect(reader.reasons, reader.story()).toEqual([]);
  for (const reader of all) {
    expect(reader.faults).toEqual([]);
    expect(reader.connects).toBe(1);
    await reader.stop();
  }
});

/** Names of runs that lie on such masters. */
async function runsOn(fits: (node: RedisServer) => boolean): Promise<string[]> {
  const found: string[] = [];
  for (let index = 0; found.length < RUNS; index++) {
    const runId = `run-${index}`;
    if (fits(await cluster.masterOf(streamKey(runId)))) found.push(runId);
  }
  return found;
}
