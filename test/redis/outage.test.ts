/** Redis away in every way: publishes are refused in time, streams hear of it once, nothing spins, and all goes on by itself. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BrokerUnavailableError } from "../../gateway/errors.ts";
import { type RedisProxy, startRedisProxy } from "../support/redis-proxy.ts";
import { freePort, type RedisServer, startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { keyOf, publish, Recorder, startBroker, type TestBroker } from "./redis-broker.ts";

const TIMEOUT_SECONDS = 1;

let server: RedisServer;
let tested: TestBroker;
let runId: string;
let reader: Recorder;

beforeEach(async () => {
  server = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
  tested = await startBroker({ url: server.url, socketTimeoutSeconds: TIMEOUT_SECONDS });
  runId = randomUUID();
  reader = new Recorder();
  tested.broker.watch(runId, reader);
  await publish(tested.broker, runId, 2);
  await reader.hear(2);
});
afterEach(async () => {
  await tested?.close();
  await server?.stop();
});

/** Publishes during an outage and expects the refusal in time. */
async function expectRefused(number: number): Promise<void> {
  const started = performance.now();
  await expect(publish(tested.broker, runId, 1, number)).rejects.toBeInstanceOf(BrokerUnavailableError);
  expect(performance.now() - started).toBeLessThan(TIMEOUT_SECONDS * 1_000 + 150);
}

/** What an outage must look like from inside, whatever its kind. */
async function expectOutage(): Promise<void> {
  await reader.until("the outage", () => reader.calls.includes("outage"), TIMEOUT_SECONDS * 3_000);
  await waitFor("health tells", () => !tested.broker.health().readable);
  const late = new Recorder();
  const watch = tested.broker.watch(randomUUID(), late);
  await late.until("a late watch hears of it", () => late.calls.includes("outage"), TIMEOUT_SECONDS * 3_000);
  watch.close();
  const [before, reconnects] = [process.cpuUsage(), tested.counts.reconnects];
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(300);
  expect(tested.counts.reconnects - reconnects).toBeLessThan(40);
  expect(reader.calls.filter((call) => call === "outage")).toHaveLength(1);
}

/** What it must look like when it is over: `expected` are all entries in their order. */
async function expectRecovery(expected: readonly number[]): Promise<void> {
  await reader.until("the recovery", () => reader.calls.includes("recovered"), 30_000);
  await waitFor("a publish is taken", () => publish(tested.broker, runId, 1, 99).then(Boolean, () => false), 30_000);
  await reader.until("it is heard", () => reader.numbers.includes(99));
  expect(reader.numbers.filter((number) => number !== 99)).toEqual(expected);
  expect(reader.gaps).toEqual([]);
  expect(reader.faults).toEqual([]);
  await waitFor("health tells", () => tested.broker.health().readable && tested.broker.health().writable);
  expect(tested.counts.connected).toEqual({ command: 1, read: 1, wake: 1 });
  expect(tested.log.lines.length).toBeLessThanOrEqual(2);
}

describe("Redis", () => {
  test("stopped and started again", async () => {
    await server.halt();
    await expectRefused(2);
    await expectOutage();
    await server.restart();
    await server.cli("XADD", keyOf(runId), "*", "p", '{"n":2}');
    await expectRecovery([0, 1, 2]);
  }, 60_000);

  test("killed", async () => {
    await server.kill9();
    await expectRefused(2);
    await expectOutage();
    await server.restart();
    await expectRecovery([0, 1]);
  }, 60_000);

  test("stopped in its tracks (SIGSTOP): connections stay, and nothing answers", async () => {
    server.pause();
    const refused = [2, 3, 4].map(expectRefused);
    await Promise.all(refused);
    await expectRefused(5);
    await expectOutage();
    server.resume();
    await reader.until("the recovery", () => reader.calls.includes("recovered"), 30_000);
    // What was not confirmed may be stored all the same when Redis wakes; whatever is stored is heard, once.
    await waitFor("all that is stored is heard", async () => {
      const stored = Number(await server.cli("XLEN", keyOf(runId)));
      return reader.entries.length === stored;
    });
    await expectRecovery(reader.numbers);
  }, 60_000);

  test("read-only: publishes are refused at once, and reading goes on", async () => {
    const other = await startRedis();
    await server.cli("REPLICAOF", other.host, `${other.port}`);
    await waitFor("it says so", async () => (await server.cli("ROLE")).startsWith("slave"));
    await expect(publish(tested.broker, runId, 1, 2)).rejects.toThrow(/READONLY/);
    await waitFor("health tells", () => !tested.broker.health().writable, 20_000);
    await server.cli("REPLICAOF", "NO", "ONE");
    await waitFor("a publish is taken", () => publish(tested.broker, runId, 1, 99).then(Boolean, () => false), 30_000);
    await waitFor("health tells", () => tested.broker.health().writable, 20_000);
    await other.stop();
  }, 60_000);

  test("a replica without its master, that answers reads with errors: an outage, though connections are up", async () => {
    await server.cli("CONFIG", "SET", "replica-serve-stale-data", "no");
    await server.cli("REPLICAOF", "127.0.0.1", `${await freePort()}`);
    await expectRefused(2);
    await expectOutage();
    expect(tested.broker.health().detail).toContain("MASTERDOWN");
    await server.cli("REPLICAOF", "NO", "ONE");
    await expectRecovery([0, 1]);
  }, 60_000);

  test("one connection of the pair cut, the other not: both are made anew, and nothing is missed", async () => {
    for (const name of ["penstock-wake", "penstock-read"]) {
      const line = (await server.cli("CLIENT", "LIST")).split("\n").find((client) => client.includes(`name=${name}`));
      await server.cli("CLIENT", "KILL", "ID", /id=(\d+)/.exec(line!)![1]!);
      const number = reader.entries.length;
      await server.cli("XADD", keyOf(runId), "*", "p", `{"n":${number}}`);
      await reader.hear(number + 1);
      await waitFor("both are up", () => tested.counts.connected.read === 1 && tested.counts.connected.wake === 1);
    }
    expect(reader.numbers).toEqual([0, 1, 2, 3]);
    expect(reader.gaps).toEqual([]);
    expect(reader.calls).not.toContain("outage");
  });
});

describe("Redis behind a name", () => {
  let proxy: RedisProxy;
  let behind: TestBroker;
  beforeEach(async () => {
    proxy = await startRedisProxy(server.port);
    behind = await startBroker({ url: proxy.url, socketTimeoutSeconds: TIMEOUT_SECONDS });
    reader = new Recorder();
    runId = randomUUID();
    behind.broker.watch(runId, reader);
    await publish(behind.broker, runId, 2);
    await reader.hear(2);
  });
  afterEach(async () => {
    await behind?.close();
    await proxy?.stop();
  });

  test("moved to another address with all that it had: no gap", async () => {
    await server.halt();
    await reader.until("the outage", () => reader.calls.includes("outage"));
    await server.restart({ port: await freePort() });
    proxy.retarget(server.port);
    await server.cli("XADD", keyOf(runId), "*", "p", '{"n":2}');
    await reader.until("the recovery", () => reader.calls.includes("recovered"), 30_000);
    expect(reader.calls).toEqual(["tail", "0", "1", "outage", "2", "recovered"]);
  });

  test("a wake connection that has gone silent is noticed, and nothing is missed meanwhile", async () => {
    proxy.freeze("penstock-wake");
    await server.cli("XADD", keyOf(runId), "*", "p", '{"n":2}');
    await reader.hear(3);
    proxy.thaw();
    await waitFor("both are up", () => behind.counts.connected.read === 1 && behind.counts.connected.wake === 1);
    expect(reader.numbers).toEqual([0, 1, 2]);
    expect(reader.gaps).toEqual([]);
  });

  test("a network that swallows everything is an outage, and over when it does not", async () => {
    proxy.freeze();
    const started = performance.now();
    await expect(publish(behind.broker, runId, 1, 9)).rejects.toBeInstanceOf(BrokerUnavailableError);
    expect(performance.now() - started).toBeLessThan(TIMEOUT_SECONDS * 1_000 + 150);
    await reader.until("the outage", () => reader.calls.includes("outage"), TIMEOUT_SECONDS * 3_000);
    proxy.thaw();
    await reader.until("the recovery", () => reader.calls.includes("recovered"), 30_000);
    const stored = Number(await server.cli("XLEN", keyOf(runId)));
    await reader.hear(stored);
    expect(reader.gaps).toEqual([]);
    expect(reader.faults).toEqual([]);
  });
});
