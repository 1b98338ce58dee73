/** What another process writes is read, each entry once and in order, however it falls between two reads. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { frame, frames, keyOf, publish, Recorder, startBroker, type TestBroker } from "./redis-broker.ts";

let server: RedisServer;
let tested: TestBroker;

beforeAll(async () => {
  server = await startRedis();
  tested = await startBroker({ url: server.url });
});
afterAll(async () => {
  await tested?.close();
  await server?.stop();
});

function watchRun(runId: string = randomUUID()): { runId: string; key: string; reader: Recorder; close(): void } {
  const reader = new Recorder();
  const watch = tested.broker.watch(runId, reader);
  return { runId, key: keyOf(runId), reader, close: () => watch.close() };
}

describe("a reader", () => {
  test("hears 200 entries that another process adds one by one, from before the key exists", async () => {
    const { key, reader, close } = watchRun();
    for (let number = 0; number < 200; number++) await server.cli("XADD", key, "*", "p", String(frame(number)));
    await reader.hear(200);
    expect(reader.numbers).toEqual(Array.from({ length: 200 }, (_, number) => number));
    expect(reader.faults).toEqual([]);
    close();
  });

  test("hears entries of one millisecond and ids beyond 2^53 in order", async () => {
    const { key, reader, close } = watchRun();
    await reader.until("the tail", () => reader.tail !== null);
    const ids = [
      ...Array.from({ length: 12 }, (_, sequence) => `1700000000000-${sequence}`),
      "1700000000001-9007199254740993",
      "1700000000001-9007199254740994",
      "9007199254740993-0",
    ];
    for (const [number, id] of ids.entries()) {
      await server.cli("XADD", key, id, "p", String(frame(number)));
      await reader.hear(number + 1);
    }
    expect(reader.ids).toEqual(ids);
    for (const [index, id] of ids.entries()) {
      const page = await tested.broker.readPage(key.slice(key.lastIndexOf(":") + 1), { id, exact: true }, 100);
      expect(page.gap).toBeNull();
      expect(page.entries.map((entry) => entry.id)).toEqual(ids.slice(index + 1));
    }
    close();
  });

  test("hears its own publishes and another's, mixed, in the order of the stream", async () => {
    const { runId, key, reader, close } = watchRun();
    const foreign = (async () => {
      for (let number = 0; number < 100; number++) await server.cli("XADD", key, "*", "p", String(frame(1_000 + number)));
    })();
    const own = (async () => {
      for (let number = 0; number < 300; number++) await publish(tested.broker, runId, 1, number);
    })();
    await Promise.all([foreign, own]);
    await reader.hear(400);
    const page = await tested.broker.readPage(runId, null, 1_000);
    expect(reader.ids).toEqual(page.entries.map((entry) => entry.id));
    expect(reader.faults).toEqual([]);
    close();
  });

  test("catches up over many pages, and over large entries", async () => {
    const { runId, reader, close } = watchRun();
    await reader.until("the tail", () => reader.tail !== null);
    await tested.broker.publish({ runId, entries: frames(1_000), idempotency: null });
    const large = Array.from({ length: 100 }, (_, index) => Buffer.from(`{"n":${1_000 + index},"text":"${"ä".repeat(30_000)}"}`));
    await tested.broker.publish({ runId, entries: large, idempotency: null });
    await reader.hear(1_100);
    expect(reader.numbers).toEqual(Array.from({ length: 1_100 }, (_, number) => number));
    expect(reader.entries.at(-1)!.payload).toEqual(large.at(-1));
    expect(reader.gaps).toEqual([]);
    close();
  });

  test("passes over nothing when the notice comes while it reads", async () => {
    const runs = Array.from({ length: 50 }, () => watchRun());
    await Promise.all(
      runs.map(async ({ runId }) => {
        for (let number = 0; number < 40; number++) await publish(tested.broker, runId, 1 + (number % 3), number * 3);
      }),
    );
    for (const { reader, runId, close } of runs) {
      const page = await tested.broker.readPage(runId, null, 1_000);
      await reader.hear(page.entries.length);
      expect(reader.ids).toEqual(page.entries.map((entry) => entry.id));
      close();
    }
  });

  test("that is not there any more costs nothing and hears nothing", async () => {
    const { key, reader, close } = watchRun();
    await reader.until("the tail", () => reader.tail !== null);
    close();
    await server.cli("XADD", key, "*", "p", String(frame(0)));
    const other = watchRun();
    await publish(tested.broker, other.runId, 1);
    await other.reader.hear(1);
    expect(reader.calls).toEqual(["tail"]);
    other.close();
  });
});

test("an entry is stored as ZenML stores it: one field, cut at a length, with a time to live", async () => {
  const runId = randomUUID();
  await publish(tested.broker, runId, 1);
  const [, name, value] = (await server.cli("XRANGE", keyOf(runId), "-", "+")).split("\n");
  expect([name, value]).toEqual(["p", String(frame(0))]);
  expect(Number(await server.cli("TTL", keyOf(runId)))).toBeGreaterThan(3_590);
  const small = await startBroker({ url: server.url, maxStreamLength: 100 });
  for (let batch = 0; batch < 5; batch++) await publish(small.broker, runId, 200);
  expect(Number(await server.cli("XLEN", keyOf(runId)))).toBeLessThan(400);
  await small.close();
});

test("a marked end is set, moved and removed with its day to live, also when Redis is away for a moment", async () => {
  const runId = randomUUID();
  const mark = `zenml:stream:server:3f2b0c1e-0000-4000-8000-000000000001:ended:${runId}`;
  tested.broker.markEnded(runId, "5-0");
  await waitFor("the mark", async () => (await server.cli("GET", mark)) === "5-0");
  expect(Number(await server.cli("TTL", mark))).toBeGreaterThan(86_300);
  tested.broker.clearEnded(runId);
  await waitFor("no mark", async () => (await server.cli("EXISTS", mark)) === "0");
  await server.kill9();
  tested.broker.markEnded(runId, "6-0");
  await server.restart();
  await waitFor("the mark", async () => (await server.cli("GET", mark)) === "6-0", 20_000);
});
