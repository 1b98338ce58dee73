import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisSentinel, startRedisSentinel } from "../support/redis-sentinel.ts";
import { waitFor } from "../support/wait-for.ts";
import { makeBroker, publish, Recorder, startBroker } from "./redis-broker.ts";

const PASSWORD = "p@ss:w/rd 100%";
let trio: RedisSentinel;

beforeAll(async () => {
  trio = await startRedisSentinel({ password: PASSWORD, args: ["--requirepass", PASSWORD, "--masterauth", PASSWORD] });
});
afterAll(() => trio?.stop());

const sentinel = () => ({ masterName: trio.masterName, nodes: trio.sentinels });

describe("a master behind three Sentinels", () => {
  test("the master is found, and followed when it changes", async () => {
    const { broker, close } = await startBroker({ sentinel: sentinel(), password: PASSWORD });
    const runId = randomUUID();
    const reader = new Recorder();
    broker.watch(runId, reader);
    await publish(broker, runId, 2);
    await reader.hear(2);
    await trio.failover();
    await waitFor("a publish is taken again", () => publish(broker, runId, 1, 2).then(Boolean, () => false), 20_000);
    await reader.until("the event behind the failover", () => reader.numbers.includes(2), 20_000);
    expect(reader.numbers.slice(0, 3)).toEqual([0, 1, 2]);
    expect(reader.gaps).toEqual([]);
    expect(reader.faults).toEqual([]);
    await close();
  }, 60_000);

  test("a master that dies is replaced within seconds", async () => {
    const { broker, close } = await startBroker({
      sentinel: sentinel(),
      url: `redis://:${encodeURIComponent(PASSWORD)}@ignored`,
    });
    const runId = randomUUID();
    const reader = new Recorder();
    broker.watch(runId, reader);
    await publish(broker, runId, 2);
    await reader.hear(2);
    const victim = await trio.master();
    await waitFor("the replica has it", async () => {
      const other = trio.servers.find((server) => server !== victim)!;
      return (await other.cli("XLEN", `zenml:stream:server:3f2b0c1e-0000-4000-8000-000000000001:run:${runId}`)) === "2";
    });
    await victim.kill9();
    await waitFor("a publish is taken again", () => publish(broker, runId, 1, 2).then(Boolean, () => false), 30_000);
    await reader.until("the event behind the failover", () => reader.numbers.includes(2), 20_000);
    expect(reader.gaps).toEqual([]);
    expect(reader.faults).toEqual([]);
    await close();
    await victim.restart();
    await trio.settled();
  }, 60_000);

  test("a master's name that no Sentinel knows ends the start with one line", async () => {
    const { broker } = makeBroker({ sentinel: { masterName: "nobody", nodes: trio.sentinels }, password: PASSWORD });
    await expect(broker.start()).rejects.toThrow(/^Stream broker startup probe failed: .*knows no master nobody/);
  });
});
