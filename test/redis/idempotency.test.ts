/** A publish with an Idempotency-Key is stored once, whatever becomes of its attempts, and whichever gateway they come to. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PublishRequest } from "../../gateway/broker/broker.ts";
import { BrokerUnavailableError, IdempotencyConflictError } from "../../gateway/errors.ts";
import { type RedisProxy, startRedisProxy } from "../support/redis-proxy.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { frames, keyOf, Recorder, startBroker, type TestBroker } from "./redis-broker.ts";

let server: RedisServer;
let proxy: RedisProxy;
/** Answers of the proxy to XADD, while there are any. */
const refusals: (string | null)[] = [];
let one: TestBroker;
let other: TestBroker;

beforeAll(async () => {
  server = await startRedis();
  proxy = await startRedisProxy(server.port, { refuse: ([name]) => (name === "XADD" ? (refusals.shift() ?? null) : null) });
  one = await startBroker({ url: proxy.url, socketTimeoutSeconds: 1 });
  other = await startBroker({ url: server.url, socketTimeoutSeconds: 1 });
  await waitFor("both are ready", () => one.broker.health().writable && other.broker.health().writable);
});
afterAll(async () => {
  await one?.close();
  await other?.close();
  await proxy?.stop();
  await server?.stop();
});

function request(count = 3, key = randomUUID()): PublishRequest {
  return { runId: randomUUID(), entries: frames(count), idempotency: { scope: "me", key, bodyHash: "a".repeat(64) } };
}

async function stored(runId: string): Promise<number[]> {
  const text = await server.cli("XRANGE", keyOf(runId), "-", "+");
  return [...text.matchAll(/"n":(\d+)/g)].map((match) => Number(match[1]));
}

describe("a repeat", () => {
  test("on another gateway gets the first answer", async () => {
    const asked = request();
    const first = await one.broker.publish(asked);
    expect(await other.broker.publish(asked)).toEqual(first);
    expect(await stored(asked.runId)).toEqual([0, 1, 2]);
  });

  test("in flight on several gateways stores once, and all get the same answer", async () => {
    const asked = request(20);
    const answers = await Promise.all([one, other, one, other, other].map(({ broker }) => broker.publish(asked)));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await stored(asked.runId)).toHaveLength(20);
  });

  test("with another body is a conflict on any gateway", async () => {
    const asked = request();
    await one.broker.publish(asked);
    const changed = { ...asked, idempotency: { ...asked.idempotency!, bodyHash: "b".repeat(64) } };
    await expect(other.broker.publish(changed)).rejects.toBeInstanceOf(IdempotencyConflictError);
  });

  test("of a batch that was stored in part goes on behind that part", async () => {
    const asked = request(5);
    refusals.push(null, null, "OOM command not allowed", "OOM command not allowed", "OOM command not allowed");
    const failure = await one.broker.publish(asked).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BrokerUnavailableError);
    expect(failure).toMatchObject({ count: 2, lastId: expect.stringMatching(/^\d+-\d+$/) });
    expect(await stored(asked.runId)).toEqual([0, 1]);
    const answer = await other.broker.publish(asked);
    expect(answer.count).toBe(5);
    expect(await stored(asked.runId)).toEqual([0, 1, 2, 3, 4]);
    expect(await one.broker.publish(asked)).toEqual(answer);
  });

  test("of a batch that failed whole is stored", async () => {
    const asked = request(1);
    refusals.push("OOM command not allowed");
    await expect(one.broker.publish(asked)).rejects.toThrow(/OOM/);
    expect(await one.broker.publish(asked)).toMatchObject({ count: 1 });
    expect(await stored(asked.runId)).toEqual([0]);
  });

  test("of an attempt whose gateway died waits, is refused once, and then takes over from what was stored", async () => {
    const asked = request(3);
    const { broker, close } = await startBroker({ url: proxy.url, socketTimeoutSeconds: 1 });
    await waitFor("it is ready", () => broker.health().writable);
    proxy.freeze();
    const lost = broker.publish(asked).catch((error: unknown) => error);
    await lost;
    await close();
    proxy.thaw();
    // Whether its claim reached Redis or not: in the end the batch is there once.
    const answers: unknown[] = [];
    await waitFor("a repeat is answered", async () => {
      const answer = await other.broker.publish(asked).catch((error: unknown) => error);
      answers.push(answer);
      return !(answer instanceof Error);
    });
    for (const failed of answers.slice(0, -1)) expect(failed).toBeInstanceOf(BrokerUnavailableError);
    expect(await stored(asked.runId)).toEqual([0, 1, 2]);
  });

  test("that a dead attempt's late write doubles is dropped by every reader", async () => {
    const asked = request(3);
    await one.broker.publish(asked);
    const text = await server.cli("--json", "XRANGE", keyOf(asked.runId), "-", "+", "COUNT", "1");
    const [[, fields]] = JSON.parse(text) as [[string, string[]]];
    const reader = new Recorder();
    other.broker.watch(asked.runId, reader);
    await reader.hear(3);
    await server.cli("XADD", keyOf(asked.runId), "*", ...fields);
    await server.cli("XADD", keyOf(asked.runId), "*", "p", '{"n":3}');
    await reader.hear(4);
    expect(reader.numbers).toEqual([0, 1, 2, 3]);
    expect(other.counts.dropped).toBe(1);
    const page = await one.broker.readPage(asked.runId, null, 10);
    expect(page.entries).toHaveLength(4);
    const late = new Recorder();
    one.broker.watch(asked.runId, late);
    await late.hear(4);
    expect(late.numbers).toEqual([0, 1, 2, 3]);
  });
});
