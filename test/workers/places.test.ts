/** The places of a run, counted over all workers. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import type { SseReader } from "../support/sse-reader.ts";
import { waitFor } from "../support/wait-for.ts";

let redis: RedisServer;
let gateway: Gateway;
const readers: SseReader[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close();
  await gateway?.stop();
});
afterAll(() => redis?.stop());

async function start(flags: readonly string[] = []): Promise<void> {
  gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags: ["--workers", "4", ...flags] });
}

async function open(runId: string, count: number): Promise<SseReader[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => gateway.stream(runId)));
  readers.push(...opened);
  return opened;
}

test("a run has 100 readers, not 100 a worker, and one that left makes room at once", { timeout: 60_000 }, async () => {
  await start();
  const opened = await open("crowded", 130);
  expect(opened.filter(({ status }) => status === 200)).toHaveLength(100);
  const refused = opened.filter(({ status }) => status === 503);
  expect(refused).toHaveLength(30);
  await waitFor("the body", () => refused.every(({ ended }) => ended));
  expect(refused[0]!.text).toContain("streaming.maxSubscribersPerStream");
  const holders = opened.filter(({ status }) => status === 200);
  for (const reader of holders.slice(0, 20)) {
    reader.close();
    const [back] = await open("crowded", 1);
    expect(back!.status).toBe(200);
  }
  // Other runs have places of their own.
  expect((await open("quiet", 5)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const metrics = await gateway.metrics();
  expect(metrics.get("penstock_claims_unanswered_total")).toBe(0);
  expect(metrics.get('penstock_connections_rejected_total{reason="subscribers"}')).toBe(30);
});

test("while the supervisor does not answer nobody is refused for a count that nobody knows", { timeout: 60_000 }, async () => {
  await start(["--max-subscribers-per-stream", "4"]);
  expect((await open("few", 4)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect((await open("few", 1))[0]!.status).toBe(503);
  process.kill(gateway.pid, "SIGSTOP");
  try {
    expect((await open("few", 2)).map(({ status }) => status)).toEqual([200, 200]);
  } finally {
    process.kill(gateway.pid, "SIGCONT");
  }
  expect((await open("few", 1))[0]!.status).toBe(503);
  await gateway.waitForMetric("penstock_claims_unanswered_total", (count) => count === 2);
});
