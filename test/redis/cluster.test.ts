import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisCluster, redisClusterTool, startRedisCluster } from "../support/redis-cluster.ts";
import type { RedisServer } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { keyOf, publish, Recorder, startBroker } from "./redis-broker.ts";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster?.stop());

describe("a cluster of three masters and three replicas", () => {
  test("2,000 runs over all masters: each event arrives once, without a CROSSSLOT, by three connections a master", async () => {
    const watching = await startBroker({ url: cluster.url, maxConnections: 3 });
    const writing = await startBroker({ url: cluster.url });
    const runs = Array.from({ length: 2_000 }, () => ({ runId: randomUUID(), reader: new Recorder() }));
    const watches = runs.map(({ runId, reader }) => watching.broker.watch(runId, reader));
    for (const { reader } of runs) await reader.until("the tail", () => reader.tail !== null);
    await Promise.all(runs.map(({ runId }) => publish(writing.broker, runId, 1)));
    await Promise.all(runs.map(({ runId }) => publish(watching.broker, runId, 2, 1)));
    for (const { reader } of runs) await reader.hear(3);
    expect(runs.filter(({ reader }) => reader.numbers.join() !== "0,1,2" && reader.numbers.join() !== "1,2,0")).toEqual([]);
    expect(runs.flatMap(({ reader }) => [...reader.faults, ...reader.gaps])).toEqual([]);
    expect(watching.counts.errors).toEqual({ connection: 0, timeout: 0, reply: 0, moved: 0 });
    for (const node of cluster.nodes) {
      expect(await node.cli("INFO", "errorstats")).not.toMatch(/CROSSSLOT|MOVED/);
    }
    expect(watching.counts.connected).toEqual({ command: 3, read: 3, wake: 3 });
    await writing.close();
    for (const node of await cluster.masters()) {
      await waitFor("three connections are left", async () => (await ours(node)) === 3);
    }
    expect(watching.broker.health()).toMatchObject({ readable: true, writable: true });
    for (const watch of watches) watch.close();
    await watching.close();
  }, 60_000);

  test("slots that move take their runs with them, and nothing is lost or doubled", async () => {
    const tested = await startBroker({ url: cluster.url });
    const { broker } = tested;
    const runs = Array.from({ length: 60 }, () => ({ runId: randomUUID(), reader: new Recorder() }));
    for (const { runId, reader } of runs) broker.watch(runId, reader);
    for (const { reader } of runs) await reader.until("the tail", () => reader.tail !== null);
    const masters = await cluster.masters();
    const [from, to] = await Promise.all([masters[0]!.cli("CLUSTER", "MYID"), masters[1]!.cli("CLUSTER", "MYID")]);
    let published = 0;
    let isMoving = true;
    const publishing = (async () => {
      while (isMoving || published < 20) {
        await Promise.all(runs.map(({ runId }) => publish(broker, runId, 1, published)));
        published++;
      }
    })();
    const address = `${masters[0]!.host}:${masters[0]!.port}`;
    const reshard = ["reshard", address, "--cluster-from", from!, "--cluster-to", to!, "--cluster-slots", "800", "--cluster-yes"];
    await redisClusterTool(...reshard);
    isMoving = false;
    await publishing;
    for (const { reader } of runs) await reader.hear(published);
    const expected = Array.from({ length: published }, (_, number) => number);
    for (const { reader } of runs) {
      expect(reader.numbers).toEqual(expected);
      expect(reader.gaps).toEqual([]);
      expect(reader.faults).toEqual([]);
    }
    expect(tested.counts.errors.moved).toBeLessThan(200);
    await tested.close();
  });

  test("a master that dies is followed by its replica: reading goes on by itself", async () => {
    const tested = await startBroker({ url: cluster.url });
    const runs = Array.from({ length: 30 }, () => ({ runId: randomUUID(), reader: new Recorder() }));
    for (const { runId, reader } of runs) {
      tested.broker.watch(runId, reader);
      await publish(tested.broker, runId, 1);
    }
    await cluster.settled();
    const victim = await cluster.masterOf(keyOf(runs[0]!.runId));
    await victim.kill9();
    await waitFor(
      "all runs can be published to",
      async () => {
        const answers = await Promise.allSettled(
          runs.map(({ runId, reader }) => (reader.numbers.includes(1) ? null : publish(tested.broker, runId, 1, 1))),
        );
        return answers.every((answer) => answer.status === "fulfilled");
      },
      30_000,
    );
    for (const { reader } of runs) await reader.until("the event behind the failover", () => reader.numbers.includes(1), 20_000);
    for (const { reader } of runs) {
      expect(reader.faults).toEqual([]);
      expect(reader.gaps).toEqual([]);
    }
    await waitFor("healthy again", () => tested.broker.health().readable && tested.broker.health().writable);
    await tested.close();
    await victim.restart();
    await cluster.settled();
  }, 60_000);
});

/** Connections of ours that a node has. */
async function ours(node: RedisServer): Promise<number> {
  return (await node.cli("CLIENT", "LIST")).split("\n").filter((line) => line.includes("name=penstock-")).length;
}
