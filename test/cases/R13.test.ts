/** R13: reads over many runs on a cluster: no CROSSSLOT, no storm of MOVED, a bounded number of connections. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { streamKey } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";

const RUNS = 200;
/** MAX_CONNECTIONS, the most that one process may have to one node. */
const MAX_CONNECTIONS = 10;

describe("R13: 200 runs over three masters", () => {
  let cluster: RedisCluster;
  let gateway: Gateway;
  let idleConnections: number[];

  beforeAll(async () => {
    cluster = await startRedisCluster({ masters: 3, replicas: 0 });
    idleConnections = await clientCounts();
    gateway = await startGateway({ broker: "redis", redisUrl: cluster.url });
  });
  afterAll(async () => {
    await gateway?.stop();
    await cluster?.stop();
  });

  it("hands over one event of each", async () => {
    const runs = Array.from({ length: RUNS }, (_, index) => `13131313-0000-4000-8000-${String(index).padStart(12, "0")}`);
    const readers = await Promise.all(runs.map((runId) => gateway.stream(runId)));
    for (const runId of runs) {
      expect((await gateway.publish(runId, { events: [{ kind: "token", payload: { runId } }] })).status).toBe(200);
    }
    await Promise.all(readers.map((reader) => reader.waitForPublished(1)));
    for (const [index, reader] of readers.entries()) expect(reader.payloads).toEqual([{ runId: runs[index] }]);

    const keys = await Promise.all(cluster.nodes.map(async (node) => Number(await node.cli("DBSIZE"))));
    for (const count of keys) expect(count).toBeGreaterThan(RUNS / 10);
    expect(await cluster.cli("EXISTS", streamKey(runs[0]!))).toBe("1");
    const errors = (await Promise.all(cluster.nodes.map((node) => node.cli("INFO", "errorstats")))).join("\n");
    expect(errors).not.toContain("CROSSSLOT");
    const moved = [...errors.matchAll(/errorstat_MOVED:count=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    expect(moved).toBeLessThanOrEqual(6);
    const connections = await clientCounts();
    for (const [index, count] of connections.entries()) {
      expect(count - idleConnections[index]!).toBeLessThanOrEqual(MAX_CONNECTIONS);
    }
  });

  async function clientCounts(): Promise<number[]> {
    const infos = await Promise.all(cluster.nodes.map((node) => node.cli("INFO", "clients")));
    return infos.map((info) => Number(/connected_clients:(\d+)/.exec(info)?.[1]));
  }
});
