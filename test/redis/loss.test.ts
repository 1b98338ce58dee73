/** What Redis loses is told once, with its reason and its bounds; and what it did not lose is never told to be lost. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, Watch } from "../../gateway/broker/broker.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { frame, keyOf, publish, Recorder, startBroker, type TestBroker } from "./redis-broker.ts";

let server: RedisServer;
let tested: TestBroker;
let broker: Broker;

beforeAll(async () => {
  server = await startRedis({ args: ["--enable-debug-command", "yes"] });
  tested = await startBroker({ url: server.url }, {}, { sweepMs: 100, proofMs: 100 });
  ({ broker } = tested);
});
afterAll(async () => {
  await tested?.close();
  await server?.stop();
});

interface Watched {
  readonly runId: string;
  readonly key: string;
  readonly reader: Recorder;
  readonly watch: Watch;
}

/** A run with `count` entries, watched from before the first. */
async function watched(count: number): Promise<Watched> {
  const runId = randomUUID();
  const reader = new Recorder();
  const watch = broker.watch(runId, reader);
  await reader.until("the tail", () => reader.tail !== null);
  if (count > 0) await publish(broker, runId, count);
  await reader.hear(count);
  return { runId, key: keyOf(runId), reader, watch };
}

/** Runs commands so that no reader sees what lies between them; `add N` adds the entry with that number and any id, `add N ID` with that id. */
async function atOnce(key: string, ...steps: string[]): Promise<string[]> {
  const lines = steps.map((step) => {
    const [command, ...args] = step.split(" ");
    if (command !== "add") return `redis.call('${command}', KEYS[1]${args.map((arg) => `, '${arg}'`).join("")})`;
    const [number = "0", id = "*"] = args;
    return `table.insert(ids, redis.call('XADD', KEYS[1], '${id}', 'p', '${frame(Number(number))}'))`;
  });
  const answer = await server.cli("EVAL", `local ids = {} ${lines.join(" ")} return ids`, "1", key);
  return answer === "" ? [] : answer.split("\n");
}

describe("a reader that is connected", () => {
  test("entries that were trimmed before it could read them are one retention gap with both bounds and their number", async () => {
    const { key, reader, watch } = await watched(3);
    const ids = await atOnce(key, "add 3", "add 4", "add 5", "add 6", "add 7", "XTRIM MAXLEN = 2");
    await reader.until("the last entry", () => reader.numbers.at(-1) === 7);
    expect(reader.calls).toEqual(["tail", "0", "1", "2", "gap retention", "6", "7"]);
    expect(reader.gaps[0]).toEqual({
      gap: { reason: "retention", from: reader.ids[2], to: ids[3], missed: 3 },
      newest: ids[4],
    });
    await publishAfter(key, reader, 8);
    watch.close();
  });

  test("a stream trimmed to nothing behind its back is a gap without an end, and the next entry comes without another", async () => {
    const { key, reader, watch } = await watched(3);
    const [lost] = await atOnce(key, "add 3", "XTRIM MAXLEN = 0");
    await reader.until("the gap", () => reader.gaps.length > 0);
    expect(reader.gaps[0]).toEqual({ gap: { reason: "retention", from: reader.ids[2], to: null, missed: 1 }, newest: lost });
    await publishAfter(key, reader, 4);
    expect(reader.gaps).toHaveLength(1);
    watch.close();
  });

  test("what it has read may be trimmed or deleted without a word", async () => {
    const { key, reader, watch } = await watched(3);
    await atOnce(key, "XTRIM MAXLEN = 0");
    await publishAfter(key, reader, 3);
    await server.cli("XDEL", key, reader.ids[3]!);
    await publishAfter(key, reader, 4);
    await atOnce(key, "add 5", "XTRIM MAXLEN = 1");
    await reader.until("the last entry", () => reader.numbers.at(-1) === 5);
    await proofs();
    expect(reader.gaps).toEqual([]);
    watch.close();
  });

  test("an entry that was deleted from the middle before it could be read is found by the count", async () => {
    const { key, reader, watch } = await watched(1);
    await proofs();
    const from = reader.ids[0]!;
    const steps = ["add 1 99999999999999-1", "add 2 99999999999999-2", "add 3 99999999999999-3", "XDEL 99999999999999-2"];
    await atOnce(key, ...steps);
    await reader.until("the gap", () => reader.gaps.length > 0);
    expect(reader.gaps[0]!.gap).toMatchObject({ reason: "retention", from, missed: 1 });
    await proofs();
    expect(reader.gaps).toHaveLength(1);
    expect(reader.numbers).toEqual([0, 1, 3]);
    watch.close();
  });

  test("a key that is deleted is one retention gap, and what is published then comes without another", async () => {
    const { key, runId, reader, watch } = await watched(3);
    await server.cli("DEL", key);
    await reader.until("the gap", () => reader.gaps.length > 0);
    expect(reader.gaps[0]).toEqual({ gap: { reason: "retention", from: reader.ids[2], to: null, missed: null }, newest: null });
    await publish(broker, runId, 2, 3);
    await reader.hear(5);
    await proofs();
    expect(reader.calls).toEqual(["tail", "0", "1", "2", "gap retention", "3", "4"]);
    watch.close();
  });

  test("the mark of the end is told after a gap, for the end may have been among what is missing", async () => {
    const { key, runId, reader, watch } = await watched(2);
    const { lastId } = await broker.end(runId);
    await reader.hear(3);
    await proofs();
    expect(reader.marks).toEqual([]);
    await server.cli("DEL", key);
    await reader.until("the mark", () => reader.marks.length > 0);
    expect(reader.marks).toEqual([lastId]);
    watch.close();
  });

  test("a key that expires before its time is a gap; one whose time was over is none", async () => {
    const early = await watched(2);
    await server.cli("PEXPIRE", early.key, "1");
    await early.reader.until("the gap", () => early.reader.gaps.length > 0);
    expect(early.reader.gaps[0]!.gap).toEqual({ reason: "retention", from: early.reader.ids[1], to: null, missed: null });
    early.watch.close();

    const short = await startBroker({ url: server.url, streamTtlSeconds: 1 }, {}, { sweepMs: 100, proofMs: 100 });
    const runId = randomUUID();
    const reader = new Recorder();
    short.broker.watch(runId, reader);
    await publish(short.broker, runId, 2);
    await reader.hear(2);
    await waitFor("the key is gone", async () => (await server.cli("EXISTS", keyOf(runId))) === "0");
    await publish(short.broker, runId, 1, 2);
    await reader.hear(3);
    // Gone and there again before it could be read.
    const again = new Recorder();
    const key = keyOf(randomUUID());
    short.broker.watch(key.slice(key.lastIndexOf(":") + 1), again);
    await again.until("the tail", () => again.tail !== null);
    await atOnce(key, "add 0", "add 1", "EXPIRE 1");
    await again.hear(2);
    await atOnce(key, "DEL", "add 2", "EXPIRE 1");
    await again.hear(3);
    expect([...reader.gaps, ...again.gaps]).toEqual([]);
    await short.close();
  });

  test("a stream replaced by one with later ids is a retention gap up to its first entry", async () => {
    const { key, reader, watch } = await watched(3);
    const [first] = await atOnce(key, "DEL", "add 3 99999999999999-1", "add 4");
    await reader.until("the new stream", () => reader.numbers.at(-1) === 4);
    expect(reader.gaps.map(({ gap }) => gap)).toEqual([{ reason: "retention", from: reader.ids[2], to: first, missed: null }]);
    watch.close();
  });

  test("a stream replaced by one with smaller ids is a rollback gap, and all of the new one comes", async () => {
    const { key, reader, watch } = await watched(3);
    await atOnce(key, "DEL", "add 10 5-1", "add 11 5-2", "add 12 6-0");
    await reader.until("the new stream", () => reader.numbers.at(-1) === 12);
    expect(reader.gaps).toEqual([{ gap: { reason: "rollback", from: reader.ids[2], to: "5-1", missed: null }, newest: "6-0" }]);
    expect(reader.calls).toEqual(["tail", "0", "1", "2", "gap rollback", "10", "11", "12"]);
    await publishAfter(key, reader, 13);
    await proofs();
    expect(reader.gaps).toHaveLength(1);
    expect(reader.faults).toEqual([]);
    watch.close();
  });

  test("a stream that lost its tail is a rollback gap, and all that is new above the common past comes", async () => {
    const { key, runId, reader, watch } = await watched(300);
    const kept = reader.ids.at(-1)!;
    const copyName = `${key}:copy`;
    await server.cli("COPY", key, copyName);
    await publish(broker, runId, 5, 300);
    await reader.hear(305);
    const last = reader.ids.at(-1)!;
    // What another master, with a clock behind, was given after the failover: ids around those that were lost.
    await server.cli("EVAL", rollBack(kept, 600), "2", key, copyName);
    await reader.until("the new history", () => reader.numbers.at(-1) === 1_599, 20_000);
    expect(reader.gaps).toHaveLength(1);
    expect(reader.gaps[0]!.gap).toMatchObject({ reason: "rollback", from: last, missed: null });
    expect(reader.gaps[0]!.gap.to).toBe(reader.ids[305]);
    expect(reader.numbers.slice(305)).toEqual(Array.from({ length: 600 }, (_, index) => 1_000 + index));
    expect(reader.faults).toEqual([]);
    await publishAfter(key, reader, 5_000);
    expect(reader.gaps).toHaveLength(1);
    watch.close();
  });

  test("a stream that lost its tail and got nothing new is a rollback gap without an end", async () => {
    const { key, runId, reader, watch } = await watched(4);
    const copyName = `${key}:copy`;
    await server.cli("COPY", key, copyName);
    await publish(broker, runId, 2, 4);
    await reader.hear(6);
    await server.cli("EVAL", rollBack(reader.ids[3]!, 0), "2", key, copyName);
    await reader.until("the gap", () => reader.gaps.length > 0);
    expect(reader.gaps[0]).toEqual({
      gap: { reason: "rollback", from: reader.ids[5], to: null, missed: null },
      newest: reader.ids[3],
    });
    await publishAfter(key, reader, 7);
    expect(reader.gaps).toHaveLength(1);
    watch.close();
  });

  test("FLUSHALL is a gap for a run that had something, and none for one that had nothing", async () => {
    const [full, empty] = [await watched(2), await watched(0)];
    await server.cli("FLUSHALL");
    await full.reader.until("the gap", () => full.reader.gaps.length > 0);
    await publish(broker, empty.runId, 1);
    await empty.reader.hear(1);
    expect(full.reader.gaps).toHaveLength(1);
    expect(empty.reader.gaps).toEqual([]);
    full.watch.close();
    empty.watch.close();
  });

  test("another kind of value under the key is an outage of that run alone, and over when it is gone", async () => {
    const [broken, other] = [await watched(2), await watched(1)];
    await server.cli("DEL", broken.key);
    await server.cli("SET", broken.key, "not a stream");
    await broken.reader.until("the outage", () => broken.reader.calls.includes("outage"));
    await publish(broker, other.runId, 1, 1);
    await other.reader.hear(2);
    await server.cli("DEL", broken.key);
    await publish(broker, broken.runId, 1, 2);
    await broken.reader.until("the recovery", () => broken.reader.calls.includes("recovered"), 30_000);
    await broken.reader.hear(3);
    expect(broken.reader.calls.filter((call) => call === "outage")).toHaveLength(1);
    expect(other.reader.calls).not.toContain("outage");
    broken.watch.close();
    other.watch.close();
  });
});

describe("what was deleted from the middle", () => {
  test("a tail and a page tell up to where they may have holes, whoever reads them", async () => {
    const { key, runId, reader, watch } = await watched(6);
    const { ids } = reader;
    expect((await broker.readPage(runId, null, 10)).deletedUpTo).toBeUndefined();
    await server.cli("XDEL", key, ids[1]!, ids[3]!);
    const late = new Recorder();
    const second = broker.watch(runId, late);
    await late.until("the tail", () => late.tail !== null);
    expect(late.numbers).toEqual([0, 2, 4, 5]);
    expect(late.tail).toMatchObject({ complete: false, deletedUpTo: ids[3] });
    for (const position of [null, { id: ids[0]!, exact: true }, { id: ids[5]!, exact: true }]) {
      expect(await broker.readPage(runId, position, 10)).toMatchObject({ deletedUpTo: ids[3] });
    }
    for (const each of [watch, second]) each.close();
  });

  test("a gap that tells of trimmed entries reaches beyond those that were deleted behind them", async () => {
    const { key, runId, reader, watch } = await watched(6);
    const { ids } = reader;
    await atOnce(key, "XTRIM MAXLEN = 4", `XDEL ${ids[4]}`);
    for (const from of ["0-0", ids[0]!]) {
      const { gap } = await broker.readPage(runId, { id: from, exact: true }, 10);
      expect(gap).toMatchObject({ reason: "retention", to: ids[5] });
    }
    watch.close();
  });
});

describe("a reader that was away", () => {
  test("what a restarted Redis did not keep is one gap; what it kept is none", async () => {
    const forgetful = await startRedis();
    const durable = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    for (const [name, redis] of [
      ["forgetful", forgetful],
      ["durable", durable],
    ] as const) {
      const away = await startBroker({ url: redis.url, socketTimeoutSeconds: 1 });
      const runId = randomUUID();
      const reader = new Recorder();
      away.broker.watch(runId, reader);
      await publish(away.broker, runId, 3);
      await reader.hear(3);
      await redis.kill9();
      await redis.restart();
      await waitFor("a publish is taken", () => publish(away.broker, runId, 1, 3).then(Boolean, () => false));
      await reader.until("it is heard", () => reader.numbers.includes(3));
      const gaps = reader.gaps.map(({ gap }) => gap);
      if (name === "durable") expect(gaps).toEqual([]);
      else expect(gaps).toMatchObject([{ from: reader.ids[2], missed: null }]);
      await away.close();
      await redis.stop();
    }
  });
});

/** A script that makes the stream what it was at its copy, with `count` other entries behind `kept`. */
function rollBack(kept: string, count: number): string {
  const [milliseconds, sequence] = kept.split("-");
  const add = `redis.call('XADD', KEYS[1], '${milliseconds}-' .. (${sequence} + 100 + i), 'p', '{"n":' .. (1000 + i) .. '}')`;
  return `redis.call('RENAME', KEYS[2], KEYS[1]) for i = 0, ${count - 1} do ${add} end`;
}

async function publishAfter(key: string, reader: Recorder, number: number): Promise<void> {
  await server.cli("XADD", key, "*", "p", String(frame(number)));
  await reader.until(`entry ${number}`, () => reader.numbers.at(-1) === number);
}

/** Returns when the counts of this run, the only one that is watched, have been compared again. */
async function proofs(): Promise<void> {
  const calls = async (): Promise<number> => {
    const stats = await server.cli("INFO", "commandstats");
    return Number(/cmdstat_xinfo\|stream:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const before = await calls();
  await waitFor("the counts are compared", async () => (await calls()) >= before + 3);
}
