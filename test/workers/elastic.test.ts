/** `workers` as a range: more as connections come, fewer as they go, and nobody loses an event by it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Follower } from "../faults/follower.ts";
import { batch, publishSurely } from "../faults/producer.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { childrenOf } from "../support/processes.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";

let redis: RedisServer;
let gateway: Gateway;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await gateway?.stop();
  await redis?.stop();
});

test("one more worker as connections pass what one is to hold, one less when there is room for all, its streams moved", {
  timeout: 180_000,
}, async () => {
  gateway = await startGateway({
    broker: "redis",
    redisUrl: redis.url,
    flags: ["--workers", "1-2", "--connections-per-worker", "40"],
  });
  expect(childrenOf(gateway.pid)).toHaveLength(1);
  const followers = Array.from({ length: 45 }, () => new Follower("elastic", () => gateway.url));
  for (const follower of followers) await follower.connected();
  await gateway.waitForMetric("penstock_workers", (workers) => workers === 2, 30_000);
  // Those who come now are shared by both.
  for (let n = 0; n < 45; n++) followers.push(new Follower("elastic", () => gateway.url));
  for (const follower of followers) await follower.connected();
  await publishSurely(() => gateway, "elastic", batch(0, 10));

  for (const follower of followers.splice(0, 70)) await follower.stop();
  await gateway.waitForMetric("penstock_connections", (connections) => connections === 20);
  const metrics = await gateway.metrics();
  const moving = Math.min(...[0, 1].map((worker) => metrics.get(`penstock_worker_connections{worker="${worker}"}`)!));
  expect(moving).toBeGreaterThan(0);
  await waitFor("one worker has gone", () => childrenOf(gateway.pid).length === 1, 120_000);
  await publishSurely(() => gateway, "elastic", batch(10, 10));
  for (const follower of followers) await follower.untilAll(20);
  for (const follower of followers) expect(follower).toMatchObject({ gaps: [], faults: [], breaks: 0 });
  expect(followers.filter(({ cleanEnds }) => cleanEnds === 1)).toHaveLength(moving);
  expect((await gateway.metrics()).get("penstock_worker_restarts_total")).toBe(0);
  for (const follower of followers) await follower.stop();
});
