/** Entries that XDEL took from the middle of a run: each reader hears of those behind its own place, whatever others were told before it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { batch } from "../faults/producer.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import type { SseReader } from "../support/sse-reader.ts";
import { keyOf } from "./redis-broker.ts";

let server: RedisServer;
const gateways: Gateway[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await server?.stop();
});

test.each([
  ["the ring", []],
  ["pages that they share", ["--ring-events", "2"]],
])("two who resume before the hole hear of it, fed from %s", async (_, flags) => {
  const gateway = await startGateway({ broker: "redis", redisUrl: server.url, flags });
  gateways.push(gateway);
  const runId = randomUUID();
  await gateway.publish(runId, batch(0, 12));
  const ids = (await server.cli("XRANGE", keyOf(runId), "-", "+")).split("\n").filter((line) => /^\d+-\d+$/.test(line));
  expect(ids).toHaveLength(12);
  await server.cli("XDEL", keyOf(runId), ids[6]!);

  for (const held of [0, 2]) {
    const reader = await gateway.stream(runId, "", { lastEventId: ids[held]! });
    await reader.waitFor("the last event", () => numbersIn(reader).at(-1) === 11);
    const gaps = reader.events.filter(({ event }) => event === "gap").map(({ data }) => JSON.parse(data) as object);
    expect(gaps).toEqual([{ reason: "retention", from: ids[held], to: ids[7], missed: null }]);
    expect(numbersIn(reader)).toEqual([...Array(12).keys()].filter((n) => n > held && n !== 6));
    reader.close();
  }
  // Behind the hole nothing is missing.
  const behind = await gateway.stream(runId, "", { lastEventId: ids[7]! });
  await behind.waitFor("the last event", () => numbersIn(behind).at(-1) === 11);
  expect(behind.events.map(({ event }) => event)).not.toContain("gap");
  behind.close();
});

function numbersIn(reader: SseReader): number[] {
  return reader.events
    .filter(({ event }) => event === "token")
    .map(({ data }) => (JSON.parse(data) as { payload: { n: number } }).payload.n);
}
