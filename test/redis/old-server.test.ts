/** A server that refuses tracking and hides what Redis 7 added: read by blocked connections and by asking, and all else works as ever. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeBrokerContract } from "../../gateway/broker/broker-contract.ts";
import { OLD_SERVER, type RedisProxy, startRedisProxy } from "../support/redis-proxy.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { keyOf, publish, Recorder, startBroker, TAIL_ENTRIES } from "./redis-broker.ts";

describeBrokerContract("an old Redis", async () => {
  const server = await startRedis();
  const proxy = await startRedisProxy(server.port, OLD_SERVER);
  const { broker, close } = await startBroker({ url: proxy.url, maxConnections: 4 });
  return {
    broker,
    tailEntries: TAIL_ENTRIES,
    countsMissed: false,
    knowsTrims: false,
    trim: async (runId, keep) => void (await server.cli("XTRIM", keyOf(runId), "MAXLEN", `${keep}`)),
    delete: async (runId) => void (await server.cli("DEL", keyOf(runId))),
    close: async () => {
      await close();
      await proxy.stop();
      await server.stop();
    },
  };
});

describe("an old Redis", () => {
  let server: RedisServer;
  let proxy: RedisProxy;
  beforeAll(async () => {
    server = await startRedis();
    proxy = await startRedisProxy(server.port, OLD_SERVER);
  });
  afterAll(async () => {
    await proxy?.stop();
    await server?.stop();
  });

  test("more runs than connections: some wait, others are asked, and each hears what another publisher writes", async () => {
    const tested = await startBroker({ url: proxy.url, maxConnections: 5 });
    const runs = Array.from({ length: 40 }, () => ({ runId: randomUUID(), reader: new Recorder() }));
    const watches = runs.map(({ runId, reader }) => tested.broker.watch(runId, reader));
    for (const { reader } of runs) await reader.until("the tail", () => reader.tail !== null);
    for (let round = 0; round < 5; round++) {
      for (const { runId } of runs) await server.cli("XADD", keyOf(runId), "*", "p", `{"n":${round}}`);
    }
    for (const { reader } of runs) await reader.hear(5);
    for (const { reader } of runs) expect([reader.numbers, reader.gaps, reader.faults]).toEqual([[0, 1, 2, 3, 4], [], []]);
    expect(tested.counts.mode).toBe("polling");
    expect(tested.log.lines.filter(({ message }) => message.includes("CLIENT TRACKING"))).toHaveLength(1);
    expect(proxy.connections).toBeLessThanOrEqual(5);
    // Those that are left get a connection each.
    for (const watch of watches.slice(3)) watch.close();
    await waitFor("all that are left wait", () => tested.counts.mode === "blocking");
    for (const { runId } of runs.slice(0, 3)) await server.cli("XADD", keyOf(runId), "*", "p", '{"n":5}');
    for (const { reader } of runs.slice(0, 3)) await reader.hear(6);
    await tested.close();
  });

  test("what was trimmed before it could be read is a gap; what was read before it was trimmed is none that is not needed", async () => {
    const tested = await startBroker({ url: proxy.url });
    const runId = randomUUID();
    const reader = new Recorder();
    tested.broker.watch(runId, reader);
    await publish(tested.broker, runId, 3);
    await reader.hear(3);
    const add = (number: number): string => `redis.call('XADD', KEYS[1], '*', 'p', '{"n":${number}}')`;
    const script = `${[3, 4, 5, 6].map(add).join(" ")} redis.call('XTRIM', KEYS[1], 'MAXLEN', '=', '2')`;
    await server.cli("EVAL", script, "1", keyOf(runId));
    await reader.until("the last", () => reader.numbers.at(-1) === 6);
    expect(reader.gaps.map(({ gap }) => gap)).toEqual([
      { reason: "retention", from: reader.ids[2], to: reader.ids[3], missed: null },
    ]);
    await publish(tested.broker, runId, 2, 7);
    await reader.hear(7);
    expect(reader.gaps).toHaveLength(1);
    await tested.close();
  });

  test("it goes on after an outage, and by tracking once the server allows it", async () => {
    const tested = await startBroker({ url: proxy.url, socketTimeoutSeconds: 1 });
    const runId = randomUUID();
    const reader = new Recorder();
    tested.broker.watch(runId, reader);
    await publish(tested.broker, runId, 1);
    await reader.hear(1);
    const modern = await startRedisProxy(server.port);
    proxy.retarget(modern.port);
    proxy.cut();
    await server.cli("XADD", keyOf(runId), "*", "p", '{"n":1}');
    await reader.hear(2);
    expect(reader.gaps).toEqual([]);
    await tested.close();
    await modern.stop();
    proxy.retarget(server.port);
  });
});

test("a user without the right to track is read for by the fall-back, and told about it", async () => {
  const server = await startRedis();
  await server.cli("ACL", "SETUSER", "plain", "on", ">pw", "~*", "&*", "+@all", "-client|tracking");
  const tested = await startBroker({ url: `redis://plain:pw@127.0.0.1:${server.port}` });
  const runId = randomUUID();
  const reader = new Recorder();
  tested.broker.watch(runId, reader);
  await publish(tested.broker, runId, 1);
  await server.cli("XADD", keyOf(runId), "*", "p", '{"n":1}');
  await reader.hear(2);
  expect(tested.counts.mode).toBe("blocking");
  expect(tested.log.lines[0]?.fields).toMatchObject({ reason: expect.stringContaining("NOPERM") });
  await tested.close();
  await server.stop();
});
