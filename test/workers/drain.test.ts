/** A rollout of gateways with several workers: SIGTERM to one while another is there. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Follower } from "../faults/follower.ts";
import { batch, publishSurely } from "../faults/producer.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { childrenOf, isRunning } from "../support/processes.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";

let redis: RedisServer;
const gateways: Gateway[] = [];

beforeAll(async () => {
  redis = await startRedis();
  for (let n = 0; n < 2; n++)
    gateways.push(await startGateway({ broker: "redis", redisUrl: redis.url, flags: ["--workers", "2"] }));
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await redis?.stop();
});

test("all workers let go of their streams cleanly, and none of them stays", { timeout: 60_000 }, async () => {
  const [old, next] = gateways as [Gateway, Gateway];
  const followers = Array.from({ length: 40 }, () => new Follower("moved", (connects) => (connects === 0 ? old : next).url));
  for (const follower of followers) await follower.connected();
  await publishSurely(() => old, "moved", batch(0, 20));
  const workers = childrenOf(old.pid);
  const stopped = old.stop();
  for (let n = 20; n < 100; n += 20) await publishSurely(() => next, "moved", batch(n, 20));
  expect(await stopped).toBe(0);
  expect(workers.filter(isRunning)).toEqual([]);
  for (const follower of followers) await follower.untilAll(100);
  for (const follower of followers) expect(follower).toMatchObject({ gaps: [], faults: [], breaks: 0, cleanEnds: 1 });
  for (const follower of followers) await follower.stop();
  // Each worker's last words are in the log, and nothing went wrong.
  expect(old.logs()).not.toContain('"level":"error"');
});
