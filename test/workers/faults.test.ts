/** Several workers on one port: what the end, or the silence, of one process costs the others and their clients. */
import { createServer } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Follower } from "../faults/follower.ts";
import { batch, publishSurely } from "../faults/producer.ts";
import { type Gateway, startFailing, startGateway } from "../support/gateway.ts";
import { childrenOf, isRunning } from "../support/processes.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";

const RUN = "shared";

let redis: RedisServer;
let gateway: Gateway;
let followers: Follower[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const follower of followers.splice(0)) await follower.stop();
  await gateway?.stop();
});
afterAll(() => redis?.stop());

async function start(workers: number, flags: readonly string[] = []): Promise<void> {
  gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags: ["--workers", String(workers), ...flags] });
}

/** Clients that come back with their last id. */
async function follow(runId: string, count: number): Promise<void> {
  followers = Array.from({ length: count }, () => new Follower(runId, () => gateway.url));
  for (const follower of followers) await follower.connected();
}

const publish = (runId: string, first: number, count = 10) => publishSurely(() => gateway, runId, batch(first, count));

describe("a worker that is killed", () => {
  test("costs its own clients one reconnect and nobody an event, its counts stay in the sum, and it is started again", {
    timeout: 60_000,
  }, async () => {
    await start(3);
    await follow("killed", 30);
    for (let n = 0; n < 100; n += 10) await publish("killed", n);
    for (const follower of followers) await follower.untilAll(100);
    const before = await gateway.metrics();
    expect(before.get("penstock_deliveries_total")).toBe(3_000);

    const [victim] = childrenOf(gateway.pid);
    process.kill(victim!, "SIGKILL");
    for (let n = 100; n < 200; n += 10) await publish("killed", n);
    for (const follower of followers) await follower.untilAll(200);

    const cut = followers.filter(({ breaks }) => breaks > 0);
    expect(cut.length).toBeGreaterThan(0);
    expect(cut.length).toBeLessThan(30);
    for (const follower of followers) expect(follower).toMatchObject({ gaps: [], faults: [], cleanEnds: 0 });
    for (const follower of cut) expect(follower.breaks).toBe(1);
    await gateway.waitForMetric("penstock_workers", (workers) => workers === 3);
    const after = await gateway.metrics();
    expect(after.get("penstock_worker_restarts_total")).toBe(1);
    expect(after.get("penstock_deliveries_total")).toBeGreaterThanOrEqual(6_000 - cut.length * 10);
    expect(after.get("penstock_connections")).toBe(30);
    expect(childrenOf(gateway.pid)).not.toContain(victim);
    // Streams that were opened are open or closed, those of the one that was killed too.
    const closed = [...after].filter(([name]) => name.startsWith("penstock_connections_closed_total{"));
    const closedSum = closed.reduce((sum, [, count]) => sum + count, 0);
    expect(after.get("penstock_connections_opened_total")! - closedSum).toBe(30);
    expect(after.get('penstock_connections_closed_total{reason="lost"}')).toBe(cut.length);
  });
});

describe("the supervisor killed", () => {
  test("takes all workers along, one that is stopped too, and leaves the port free", { timeout: 30_000 }, async () => {
    await start(3);
    const { port } = gateway;
    const workers = childrenOf(gateway.pid);
    expect(workers).toHaveLength(3);
    process.kill(workers[0]!, "SIGSTOP");
    await gateway.kill9();
    await waitFor("the workers are gone", () => !workers.some(isRunning), 5_000);
    const next = createServer().listen({ port, host: "127.0.0.1", exclusive: true });
    await waitFor("the port is free", () => next.listening);
    next.close();
  });
});

describe("a worker that is stuck", () => {
  test("holds up neither the others' streams nor the scrape, and is replaced in the end", { timeout: 90_000 }, async () => {
    await start(3);
    await follow(RUN, 12);
    await publish(RUN, 0);
    for (const follower of followers) await follower.untilAll(10);
    const perWorker = async (): Promise<number[]> => {
      const metrics = await gateway.metrics();
      return [0, 1, 2].map((worker) => metrics.get(`penstock_worker_connections{worker="${worker}"}`)!);
    };
    const counts = await perWorker();
    expect(counts.reduce((sum, count) => sum + count)).toBe(12);

    const stuck = childrenOf(gateway.pid)[0]!;
    process.kill(stuck, "SIGSTOP");
    const began = performance.now();
    const during = await gateway.metrics();
    expect(performance.now() - began).toBeLessThan(2_000);
    // Its share stays as it was last known.
    expect(during.get("penstock_deliveries_total")).toBe(120);
    // A publish may land on the one that is stuck; the producer's next try has another port, and so mostly another worker.
    await publishSurely(
      () =>
        ({
          ...gateway,
          publish: (...args: Parameters<Gateway["publish"]>) => within(1_000, gateway.publish(...args)),
        }) as Gateway,
      RUN,
      batch(10, 10),
    );
    const served = (): Follower[] => followers.filter(({ numbers }) => numbers.length === 20);
    await waitFor("the readers of the others have it", () => served().length >= 12 - Math.max(...counts));
    await gateway.waitForMetric("penstock_workers", (workers) => workers === 2);

    await waitFor("the stuck one is replaced", () => !childrenOf(gateway.pid).includes(stuck), 60_000);
    for (const follower of followers) await follower.untilAll(20);
    for (const follower of followers) expect(follower).toMatchObject({ gaps: [], faults: [] });
    await gateway.waitForMetric("penstock_workers", (workers) => workers === 3);
    expect(gateway.logs()).toContain("no sign of life");
  });
});

describe("the port", () => {
  test("is not shared with a second gateway, also while all workers are full and none listens", { timeout: 30_000 }, async () => {
    await start(2, ["--max-connections-per-worker", "5"]);
    const second = (): ReturnType<typeof startFailing> =>
      startFailing({ broker: "redis", redisUrl: redis.url, flags: ["--workers", "2", "--port", String(gateway.port)] });
    const refused = await second();
    expect(refused.code).toBe(1);
    expect(refused.logs).toContain(`127.0.0.1:${gateway.port} is taken by another program; choose another port with --port.`);
    // Streams come until nobody listens any more.
    const isFull = async (): Promise<boolean> => {
      const follower = new Follower(RUN, () => gateway.url);
      followers.push(follower);
      await waitFor("an answer", () => follower.isConnected || follower.refusals > 0);
      return follower.refusals > 0;
    };
    await waitFor("no worker listens", isFull, 20_000);
    const still = await second();
    expect(still.code).toBe(1);
    expect(still.logs).toContain("is taken by another program");
  });
});

async function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer in time")), limitMs);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
