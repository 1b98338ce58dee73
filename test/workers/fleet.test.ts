/** The moments at which a worker may end, or the gateway be told to: while workers start, while they are asked, while they let go. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../gateway/config/load.ts";
import { createMetrics } from "../../gateway/metrics/metrics.ts";
import { Fleet } from "../../gateway/supervisor/fleet.ts";
import { PacedReader } from "../faults/paced-reader.ts";
import { batch, publishSurely } from "../faults/producer.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { MemoryLog } from "../support/memory-log.ts";
import { childrenOf } from "../support/processes.ts";
import { RawConnection } from "../support/raw-http.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";

describe("a fleet in this process", () => {
  let fleet: Fleet;
  afterEach(() => fleet?.close());

  function build(workers: number, served: (pid: number) => void = () => {}): Fleet {
    const { config } = loadConfig({ flags: new Map<string, unknown>([["port", 0]]), env: {}, file: null });
    const log = new MemoryLog();
    log.info = (fields, message) => {
      if (message === "a worker serves") served((fields as { pid: number }).pid);
    };
    fleet = new Fleet(config, { min: workers, max: workers }, createMetrics(), log);
    return fleet;
  }

  test("a worker that ends while the others start is started again", { timeout: 30_000 }, async () => {
    let first: number | null = null;
    build(2, (pid) => {
      if (first === null) process.kill(pid, "SIGKILL");
      first ??= pid;
    });
    await fleet.start();
    await waitFor("both serve", () => fleet.health().detail.startsWith("2 of 2 workers"));
    expect(childrenOf(process.pid)).not.toContain(first);
  });

  test("a worker that gets stuck while it starts ends the start", { timeout: 60_000 }, async () => {
    build(1);
    const started = fleet.start();
    await waitFor("its process", () => childrenOf(process.pid).length === 1);
    process.kill(childrenOf(process.pid)[0]!, "SIGSTOP");
    await expect(started).rejects.toThrow("a worker ended before it served");
  });

  test("told to close while it starts it starts nothing more", { timeout: 30_000 }, async () => {
    build(2);
    const soon = expect(fleet.start()).rejects.toThrow();
    await fleet.close();
    await soon;
    build(2);
    const later = expect(fleet.start()).rejects.toThrow();
    await waitFor("the first process", () => childrenOf(process.pid).length === 1);
    await fleet.close();
    await later;
    expect(childrenOf(process.pid)).toEqual([]);
  });
});

describe("a gateway", () => {
  let redis: RedisServer;
  let gateway: Gateway;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(() => gateway?.stop());
  afterAll(() => redis?.stop());

  async function start(...flags: string[]): Promise<void> {
    gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags: ["--workers", "2", ...flags] });
  }

  test("has no more workers by itself than the memory that it is allowed is enough for", async () => {
    const env = { PENSTOCK_OVERLOAD_MEMORY_LIMIT_BYTES: "256Mi" };
    gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags: ["--workers", "auto"], env });
    expect(childrenOf(gateway.pid)).toEqual([]);
  });

  /** A reader that takes nothing keeps the drain waiting. */
  async function stalledReader(runId: string): Promise<PacedReader> {
    const reader = await PacedReader.open(gateway, runId);
    expect(reader.status).toBe(200);
    for (let n = 0; n < 320; n += 20) await publishSurely(() => gateway, runId, batch(n, 20, { padding: 50_000 }));
    await gateway.waitForMetric("penstock_backpressure_total", (count) => count > 0);
    return reader;
  }

  test("counts once what a worker had counted that ends while it is asked", { timeout: 30_000 }, async () => {
    await start();
    const readers = await Promise.all(Array.from({ length: 8 }, () => gateway.stream("asked")));
    await publishSurely(() => gateway, "asked", batch(0, 10));
    for (const reader of readers) await reader.waitForPublished(10);
    const name = "penstock_deliveries_total";
    await gateway.waitForMetric(name, (count) => count === 80);
    for (const worker of childrenOf(gateway.pid)) process.kill(worker, "SIGSTOP");
    const scraped = gateway.metrics();
    for (const worker of childrenOf(gateway.pid)) process.kill(worker, "SIGKILL");
    expect((await scraped).get(name)).toBe(80);
  });

  test("shows what becomes of its streams while it lets go of them, and keeps their places", { timeout: 30_000 }, async () => {
    await start("--drain-seconds", "5", "--max-subscribers-per-stream", "1");
    const stalled = await stalledReader("one");
    const readers = await Promise.all(Array.from({ length: 10 }, (_, n) => gateway.stream(`quiet-${n}`)));
    const kept = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(gateway.port)));
    for (const connection of kept) await connection.send("GET /api/v1/info HTTP/1.1\r\nHost: a\r\n\r\n");
    for (const connection of kept) await connection.response();
    const stopped = gateway.stop();
    await gateway.waitForMetric("penstock_draining", (draining) => draining === 1);
    for (const connection of kept) await connection.send("GET /api/v1/runs/one/events/stream HTTP/1.1\r\nHost: a\r\n\r\n");
    for (const connection of kept) expect((await connection.responses(2))[1]!.status).toBe(503);
    for (const reader of readers) await reader.waitForEnd();
    await gateway.waitForMetric('penstock_connections_closed_total{reason="shutdown"}', (count) => count === 10, 3_000);
    expect((await gateway.metrics()).get("penstock_connections")).toBe(1);
    stalled.close();
    for (const connection of kept) connection.close();
    expect(await stopped).toBe(0);
  });

  test("that is told to stop does not wait for a worker that is stuck", { timeout: 40_000 }, async () => {
    await start("--drain-seconds", "30");
    process.kill(childrenOf(gateway.pid)[0]!, "SIGSTOP");
    await gateway.waitForMetric("penstock_workers", (workers) => workers === 1);
    expect(await gateway.stop()).toBe(0);
  });

  test("takes nobody any more when it is told to stop, not even by a worker that starts at that time", {
    timeout: 30_000,
  }, async () => {
    await start("--drain-seconds", "6");
    const stalled = await stalledReader("held");
    // The readers of the other one are of no use here.
    const holds = async (worker: number): Promise<boolean> =>
      (await gateway.metrics()).get(`penstock_worker_connections{worker="${worker}"}`) === 1;
    const other = (await holds(0)) ? 1 : 0;
    const before = childrenOf(gateway.pid);
    process.kill(before[other]!, "SIGKILL");
    await waitFor("another is started", () => childrenOf(gateway.pid).some((pid) => !before.includes(pid)));
    const stopped = gateway.stop();
    await waitFor("the one that starts is gone", () => childrenOf(gateway.pid).length === 1, 3_000);
    await expect(gateway.stream("late")).rejects.toThrow();
    stalled.close();
    expect(await stopped).toBe(0);
  });
});
