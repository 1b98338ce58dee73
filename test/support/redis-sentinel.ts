/** A master, a replica and three Sentinels that watch over them. */
import { type RedisServer, startRedis } from "./redis-servers.ts";
import { waitFor } from "./wait-for.ts";

export interface RedisSentinel {
  readonly masterName: string;
  /** `host:port` of each Sentinel. */
  readonly sentinels: readonly string[];
  readonly servers: readonly RedisServer[];
  /** The server that the Sentinels call the master at present. */
  master(): Promise<RedisServer>;
  /** Asks for a failover and returns when the other server is the master. */
  failover(): Promise<void>;
  /** Resolves when the Sentinels agree and a replica is in step. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface RedisSentinelOptions {
  readonly masterName?: string;
  /** Milliseconds of silence after which the master is taken for dead. */
  readonly downAfterMs?: number;
  readonly args?: readonly string[];
  /** What the Sentinels and the replica sign in to the servers with; `args` must set it. */
  readonly password?: string;
}

export async function startRedisSentinel(options: RedisSentinelOptions = {}): Promise<RedisSentinel> {
  const { masterName = "mymaster", downAfterMs = 1_000, args = [], password } = options;
  const user = password === undefined ? {} : { user: { name: "default", password } };
  const started: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((server) => server.stop()));
  };
  try {
    const first = await startRedis({ args, ...user });
    started.push(first);
    const second = await startRedis({ args: [...args, "--replicaof", first.host, `${first.port}`], ...user });
    started.push(second);
    const servers = [first, second];
    const sentinels: RedisServer[] = [];
    for (let number = 0; number < 3; number++) {
      const lines = [
        `sentinel monitor ${masterName} ${first.host} ${first.port} 2`,
        `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
        `sentinel failover-timeout ${masterName} 4000`,
        ...(password === undefined ? [] : [`sentinel auth-pass ${masterName} ${JSON.stringify(password)}`]),
      ];
      const sentinel = await startRedis({ sentinelConfig: lines });
      started.push(sentinel);
      sentinels.push(sentinel);
    }
    const made = new Trio(masterName, servers, sentinels, stop);
    await made.settled();
    return made;
  } catch (error) {
    await stop();
    throw error;
  }
}

class Trio implements RedisSentinel {
  readonly masterName: string;
  readonly servers: readonly RedisServer[];
  readonly stop: () => Promise<void>;
  readonly #sentinels: readonly RedisServer[];

  constructor(masterName: string, servers: readonly RedisServer[], sentinels: readonly RedisServer[], stop: () => Promise<void>) {
    this.masterName = masterName;
    this.servers = servers;
    this.stop = stop;
    this.#sentinels = sentinels;
  }

  get sentinels(): string[] {
    return this.#sentinels.map((sentinel) => `${sentinel.host}:${sentinel.port}`);
  }

  async master(): Promise<RedisServer> {
    const address = await this.#sentinels[0]!.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.masterName);
    const port = Number(address.split("\n")[1]);
    return this.servers.find((server) => server.port === port)!;
  }

  async failover(): Promise<void> {
    const before = await this.master();
    await this.#sentinels[0]!.cli("SENTINEL", "FAILOVER", this.masterName);
    await waitFor("the other server is the master", async () => (await this.master()) !== before, 30_000);
    await this.settled();
  }

  async settled(): Promise<void> {
    await waitFor(
      "the Sentinels agree",
      async () => {
        for (const sentinel of this.#sentinels) {
          const state = await sentinel.cli("SENTINEL", "MASTER", this.masterName);
          const fields = new Map(pairs(state.split("\n")));
          if (fields.get("flags") !== "master" || fields.get("num-other-sentinels") !== "2") return false;
          if (Number(fields.get("num-slaves")) < 1) return false;
        }
        const replication = await (await this.master()).cli("INFO", "replication");
        return /slave0:.*state=online/.test(replication);
      },
      30_000,
    );
  }
}

function pairs(lines: readonly string[]): [string, string][] {
  return lines.flatMap((line, index): [string, string][] => (index % 2 === 0 ? [[line, lines[index + 1] ?? ""]] : []));
}
