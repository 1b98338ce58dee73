/** SIGTERM: readers are let go so that they lose nothing, and nobody is refused who still gets through. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, type GatewayOptions, startGateway } from "../support/gateway.ts";
import { RawConnection } from "../support/raw-http.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { Follower } from "./follower.ts";
import { PacedReader } from "./paced-reader.ts";
import { batch, publishSurely } from "./producer.ts";
import { untilReadiness } from "./readiness.ts";

const READERS = 200;

let redis: RedisServer;
const gateways: Gateway[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.kill9();
});
afterAll(() => redis?.stop());

async function start(flags: readonly string[]): Promise<Gateway> {
  const options: GatewayOptions = { broker: "redis", redisUrl: redis.url, flags };
  const gateway = await startGateway(options);
  gateways.push(gateway);
  return gateway;
}

describe("a gateway that is told to stop", () => {
  test(`lets ${READERS} readers go, who resume on another gateway without a loss`, { timeout: 60_000 }, async () => {
    const room = ["--max-subscribers-per-stream", "300"];
    const [leaving, staying] = await Promise.all([
      start([...room, "--drain-delay-seconds", "1", "--drain-seconds", "5"]),
      start(room),
    ]);
    const runId = "drained";
    const firstHere = (connects: number): string => (connects === 0 ? leaving.url : staying.url);
    const queries = ["", "?kinds=odd", "?kinds=never"];
    const followers = Array.from(
      { length: READERS },
      (_, index) => new Follower(runId, firstHere, { query: queries[index % 3]! }),
    );
    for (const follower of followers) await follower.connected();
    const keptAlive = await RawConnection.open(leaving.port);
    await keptAlive.send("GET /api/v1/info HTTP/1.1\r\nHost: gateway.test\r\n\r\n");
    expect((await keptAlive.response()).status).toBe(200);
    // A full socket is given until the end of the drain: it holds the drain open while we look.
    const stalled = await PacedReader.open(leaving, "big");
    for (let n = 0; n < 320; n += 20) await publishSurely(() => leaving, "big", batch(n, 20, { padding: 50_000 }));
    await leaving.waitForMetric("penstock_backpressure_total", (count) => count > 0);

    let published = 0;
    let isOver = false;
    const publishing = (async () => {
      for (; !isOver; published += 5)
        await publishSurely(() => staying, runId, batch(published, 5, { kindOf: (n) => (n % 2 === 1 ? "odd" : "even") }));
    })();
    await waitFor("the first events", () => followers[0]!.numbers.length > 0);
    const exit = leaving.stop();
    await untilReadiness(leaving, 503);
    expect(followers.every(({ connects, cleanEnds }) => connects === 1 && cleanEnds === 0)).toBe(true);
    const latecomer = new Follower(runId, firstHere);
    await latecomer.connected();
    expect(latecomer.connects).toBe(1);
    followers.push(latecomer);
    for (const follower of followers) await follower.until("its stream here is over", () => follower.cleanEnds === 1);

    await keptAlive.send(`GET /api/v1/runs/${runId}/events/stream HTTP/1.1\r\nHost: gateway.test\r\n\r\n`);
    const served = (await keptAlive.responses(2))[1]!;
    expect(served.status).toBe(200);
    expect(served.complete, "a clean end of the body").toBe(true);
    expect(served.headers).toContainEqual(["connection", "close"]);
    expect(served.body.toString().match(/^retry: \d+$/gm)).toHaveLength(2);
    expect(await exit).toBe(0);
    stalled.close();

    isOver = true;
    await publishing;
    expect(published).toBeGreaterThan(0);
    const odd = Math.floor(published / 2);
    for (const [index, follower] of followers.entries()) {
      const kind = index === READERS ? 0 : index % 3;
      if (kind === 0) await follower.untilAll(published);
      if (kind === 1) await follower.until("all odd ones", () => follower.numbers.length === odd);
      if (kind === 2) expect(follower.numbers).toEqual([]);
      expect(follower).toMatchObject({ gaps: [], faults: [], connects: 2, cleanEnds: 1, breaks: 0 });
      expect(follower.retries, "one at the beginning, one of its own at the end").toHaveLength(2);
    }
    expect(new Set(followers.map(({ retries }) => retries[1])).size, "nobody comes back at the same moment").toBeGreaterThan(
      READERS / 4,
    );
    for (const follower of followers) await follower.stop();
  });

  test("with drain.frames zenml says shutdown and end, as ZenML's server would", async () => {
    const gateway = await start(["--drain-frames", "zenml"]);
    const runId = "zenml";
    const readers = await Promise.all(Array.from({ length: 20 }, () => gateway.stream(runId)));
    await publishSurely(() => gateway, runId, batch(0, 3));
    for (const reader of readers) await reader.waitForPublished(3);
    expect(await gateway.stop()).toBe(0);
    for (const reader of readers) {
      await reader.waitForEnd();
      expect(reader.events.slice(3).map(({ event }) => event)).toEqual(["gap", "end"]);
      expect(reader.gaps[0]).toMatchObject({ reason: "shutdown" });
      expect(reader.of("end")[0]?.data).toBe("{}");
      expect(Math.max(...reader.retries), "they are meant to come back").toBeLessThan(10_000);
    }
  });
});
