/** A cluster whose nodes come back on other addresses: one by one, and all at once behind a name that stays. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { freePort, type RedisServer } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { Follower } from "./follower.ts";
import { batch, publishSurely } from "./producer.ts";
import { untilReadiness } from "./readiness.ts";

export interface MoveLoad {
  readonly runs: number;
  /** How often all six nodes are moved one by one. */
  readonly rounds: number;
  /** Seconds for which all are gone at once. */
  readonly goneSeconds: number;
}

/** The longest pause between two tries to reconnect, and some. */
const RECOVERY_MS = 45_000;
/** A node that moves is not to be replaced by its replica meanwhile: this is about its way back. */
const NODE_ARGS = ["--cluster-replica-no-failover", "yes", "--cluster-require-full-coverage", "no"];
/** Nothing that was confirmed is lost with a process. */
const KEEP_ALL = ["--appendonly", "yes", "--appendfsync", "always"];
const MASTERS = 3;
const PAUSE_MS = 50;
/** What a cluster takes to find a node again that has moved is up to Redis. */
const SETTLE_MS = 60_000;

export function describeMoves({ runs, rounds, goneSeconds }: MoveLoad): void {
  // Other systems than Linux have one loopback address, and no other to move to.
  describe.skipIf(process.platform !== "linux")("a cluster behind a name that stays", () => {
    let cluster: RedisCluster;
    let gateway: Gateway;
    let name: StableName;

    beforeAll(async () => {
      cluster = await startRedisCluster({ nodeTimeoutMs: 5_000, args: [...NODE_ARGS, ...KEEP_ALL] });
      name = await StableName.open(() => cluster.nodes[0]!);
      gateway = await startGateway({
        broker: "redis",
        redisUrl: `redis://localhost:${name.port}/0`,
        flags: ["--heartbeat-seconds", "1"],
      });
    });
    afterAll(async () => {
      await gateway?.stop();
      name?.close();
      await cluster?.stop();
    });

    test("all nodes restarted on other addresses, one by one", { timeout: rounds * 150_000 }, async () => {
      const load = await startLoad(gateway, runs, "moved");
      for (let round = 0; round < rounds; round++) {
        for (const [index, node] of cluster.nodes.entries()) {
          await node.halt();
          await comeBack(node, `127.0.0.${20 + round * 10 + index}`);
          await waitFor(`the cluster has taken in node ${index}`, () => isWhole(cluster), SETTLE_MS);
        }
      }
      // A slow restart is an outage of the runs of that node, and is told; and of others, where a master that has not found one of the others
      // again is in a minority without the third (CLUSTERDOWN). A loss would be told otherwise.
      await load.finish((reasons) => reasons.length <= MASTERS * rounds && reasons.every((reason) => reason === "outage"));
    });

    test("all nodes killed with -9 and started on other addresses", { timeout: goneSeconds * 1_000 + 150_000 }, async () => {
      const load = await startLoad(gateway, runs, "gone");
      await Promise.all(cluster.nodes.map((node) => node.kill9()));
      const until = performance.now() + goneSeconds * 1_000;
      for (const follower of load.followers) await follower.until("the outage", () => follower.gaps.length > 0, 10_000);
      await untilReadiness(gateway, 503);
      await new Promise((resolve) => setTimeout(resolve, until - performance.now()));
      await Promise.all(cluster.nodes.map((node, index) => comeBack(node, `127.0.0.${120 + index}`)));
      // Nobody is left where the others believe it to be: what announces new addresses introduces them.
      const [first, ...others] = cluster.nodes;
      for (const node of others) await first!.cli("CLUSTER", "MEET", node.host, `${node.port}`, await busPort(node));
      await waitFor("the cluster serves all its slots", () => isWhole(cluster), SETTLE_MS);
      await load.finish((reasons) => reasons.length === 1 && reasons[0] === "outage");
    });
  });
}

/** Starts a node that has been halted or killed on a new address, which it tells the others. */
async function comeBack(node: RedisServer, host: string): Promise<void> {
  await node.restart({ host, port: await freePort(host) });
  await node.cli("CONFIG", "SET", "cluster-announce-ip", host);
}

/** What counts for clients; replicas may look for their masters at the old addresses for long (Redis 7.0). */
async function isWhole(cluster: RedisCluster): Promise<boolean> {
  const states = await Promise.all(cluster.nodes.map((node) => node.cli("CLUSTER", "INFO").catch(() => "")));
  return states.every((state) => state.includes("cluster_state:ok"));
}

async function busPort(node: RedisServer): Promise<string> {
  return (await node.cli("CONFIG", "GET", "cluster-port")).split("\n")[1]!;
}

/** Runs with a reader and a producer each; the producer repeats what is not confirmed. */
async function startLoad(gateway: Gateway, runs: number, label: string) {
  const runIds = Array.from({ length: runs }, (_, index) => `${label}-${index}`);
  const followers = runIds.map((runId) => new Follower(runId, () => gateway.url));
  for (const follower of followers) await follower.connected();
  let isOver = false;
  const counts = runIds.map(() => 0);
  const producers = runIds.map(async (runId, index) => {
    while (!isOver) {
      await publishSurely(() => gateway, runId, batch(counts[index]!, 1), 4 * RECOVERY_MS);
      counts[index]!++;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  });
  for (const follower of followers) await follower.untilAll(1);
  return {
    followers,
    /** Everything is as before: all that was published has come once, in order, with no gap that does not `hold`. */
    async finish(hold: (reasons: string[]) => boolean): Promise<void> {
      await untilReadiness(gateway, 200, RECOVERY_MS);
      isOver = true;
      await Promise.all(producers);
      for (const [index, follower] of followers.entries()) {
        await follower.untilAll(counts[index]!, RECOVERY_MS);
        expect(follower.numbers).toEqual(Array.from({ length: counts[index]! }, (_, n) => n));
        expect(follower).toMatchObject({ faults: [], connects: 1, breaks: 0 });
        expect(hold(follower.reasons), `gaps: ${JSON.stringify(follower.gaps)}`).toBe(true);
        await follower.stop();
      }
    },
  };
}

/** A port that leads to wherever a server is at the moment, as a service's name does. */
class StableName {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, sockets: Set<Socket>) {
    this.#server = server;
    this.#sockets = sockets;
    this.port = (server.address() as AddressInfo).port;
  }

  static open(target: () => RedisServer): Promise<StableName> {
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const { host, port } = target();
      const far = connect({ host, port });
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          sockets.delete(socket);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
    return new Promise((resolve) => server.listen(0, "localhost", () => resolve(new StableName(server, sockets))));
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
