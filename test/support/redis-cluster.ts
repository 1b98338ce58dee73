/** A real Redis Cluster for tests: three masters with a replica each, unless told otherwise. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { freePort, type RedisServer, type RedisServerOptions, startRedis } from "./redis-servers.ts";
import { waitFor } from "./wait-for.ts";

const run = promisify(execFile);

export interface RedisClusterOptions extends Omit<RedisServerOptions, "host" | "port"> {
  readonly masters?: number;
  /** Replicas a master. */
  readonly replicas?: number;
  /** Milliseconds after which an unanswering master is taken for dead. */
  readonly nodeTimeoutMs?: number;
  /** The address of each node; all on 127.0.0.1 otherwise. */
  readonly hostOf?: (index: number) => string;
  /** More arguments of one node. */
  readonly argsOf?: (index: number) => readonly string[];
  /** One port for all nodes, when their addresses differ. */
  readonly port?: number;
}

export interface RedisCluster {
  /** Address of the first node. */
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** Runs redis-cli in cluster mode: it follows redirections to the key's master. */
  cli(...args: string[]): Promise<string>;
  /** The running nodes that are masters at present. */
  masters(): Promise<RedisServer[]>;
  masterOf(key: string): Promise<RedisServer>;
  /** Resolves when all running nodes call the cluster whole and each replica is in step. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters: masterCount = 3, replicas = 1, nodeTimeoutMs = 2_000, hostOf, argsOf, port, args = [], ...rest } = options;
  const nodes: RedisServer[] = [];
  for (let index = 0; index < masterCount * (1 + replicas); index++) {
    const host = hostOf?.(index) ?? "127.0.0.1";
    const clusterArgs = ["--cluster-enabled", "yes", "--cluster-node-timeout", `${nodeTimeoutMs}`];
    const bus = ["--cluster-port", `${await freePort(host)}`];
    nodes.push(
      await startRedis({
        ...rest,
        host,
        ...(port ? { port } : {}),
        args: [...clusterArgs, ...bus, ...args, ...(argsOf?.(index) ?? [])],
      }),
    );
  }
  const first = nodes[0]!;
  const cluster = new Cluster(nodes);
  try {
    const addresses = nodes.map((node) => `${node.host}:${node.port}`);
    await first.cli("--cluster", "create", ...addresses, "--cluster-replicas", `${replicas}`, "--cluster-yes");
    await cluster.settled();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

class Cluster implements RedisCluster {
  readonly nodes: readonly RedisServer[];

  constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  get url(): string {
    return this.nodes[0]!.url;
  }

  async cli(...args: string[]): Promise<string> {
    const node = (await this.#running())[0]!;
    return node.cli("-c", ...args);
  }

  async masters(): Promise<RedisServer[]> {
    const found: RedisServer[] = [];
    for (const node of await this.#running()) {
      if ((await node.cli("ROLE")).startsWith("master")) found.push(node);
    }
    return found;
  }

  async masterOf(key: string): Promise<RedisServer> {
    const running = await this.#running();
    const slot = Number(await running[0]!.cli("CLUSTER", "KEYSLOT", key));
    for (const node of running) {
      const lines = (await node.cli("CLUSTER", "NODES")).split("\n");
      const own = lines.find((line) => line.includes("myself,master"));
      const ranges = own?.split(" ").slice(8) ?? [];
      const has = ranges.some((range) => {
        const [from, to = from] = range.split("-").map(Number);
        return slot >= from! && slot <= to!;
      });
      if (has) return node;
    }
    throw new Error(`no running master has slot ${slot}`);
  }

  async settled(): Promise<void> {
    await waitFor("the cluster is whole", async () => {
      for (const node of await this.#running()) {
        const info = await node.cli("CLUSTER", "INFO").catch(() => "");
        const replication = await node.cli("INFO", "replication").catch(() => "");
        if (!info.includes("cluster_state:ok") || replication.includes("master_link_status:down")) return false;
        if (!info.includes(`cluster_known_nodes:${this.nodes.length}`)) return false;
      }
      return true;
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async #running(): Promise<RedisServer[]> {
    const answers = await Promise.all(this.nodes.map((node) => node.cli("PING").catch(() => "")));
    return this.nodes.filter((_, index) => answers[index] === "PONG");
  }
}

/** `redis-cli --cluster …`, as to move slots. */
export async function redisClusterTool(...args: string[]): Promise<string> {
  const { stdout } = await run("redis-cli", ["--cluster", ...args], { timeout: 60_000, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}
