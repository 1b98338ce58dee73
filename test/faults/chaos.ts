/** Faults of all kinds, in an order made by chance, while two gateways serve: what is confirmed arrives once and in order, and no gap lies. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { Follower } from "./follower.ts";
import { batch, publishSurely } from "./producer.ts";

export interface ChaosLoad {
  readonly seconds: number;
  readonly runs: number;
  /** The same number makes the same order of faults. */
  readonly seed: number;
  /** False: Redis refuses CLIENT TRACKING, and runs are read by the fall-back. */
  readonly tracking: boolean;
}

/** Who may do all but that. */
const UNTRACKED = { name: "untracked", password: "secret" };

const RECOVERY_MS = 60_000;
const KINDS = ["token", "progress", "tool"];
const kindOf = (n: number): string => KINDS[n % KINDS.length]!;

export function describeChaos({ seconds, runs, seed, tracking }: ChaosLoad): void {
  let redis: RedisServer;
  let gateways: [Gateway, Gateway];
  const start = (flags: readonly string[] = []) =>
    startGateway({
      broker: "redis",
      redisUrl: tracking ? redis.url : redis.url.replace("//", `//${UNTRACKED.name}:${UNTRACKED.password}@`),
      flags: ["--heartbeat-seconds", "1", "--ring-events", "64", "--max-age-minutes", "0.2", ...flags],
      env: { ZENML_REDIS_SOCKET_TIMEOUT: "1" },
    });

  beforeAll(async () => {
    const user = ["--user", UNTRACKED.name, "on", `>${UNTRACKED.password}`, "~*", "&*", "+@all", "-client|tracking"];
    redis = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always", ...user] });
    gateways = await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    for (const gateway of gateways ?? []) await gateway.kill9();
    await redis?.stop();
  });

  test(`${seconds} s of faults, ${tracking ? "read by tracking" : "read without tracking"} (seed ${seed})`, {
    timeout: seconds * 1_000 + 4 * RECOVERY_MS,
  }, async () => {
    const random = randomOf(seed);
    const between = (least: number, most: number): number => least + Math.floor(random() * (most - least));
    const runIds = Array.from({ length: runs }, (_, index) => `chaos-${index}`);
    const queries = ["", "?kinds=tool", "?kinds=never"];
    const followers = runIds.map((runId, index) =>
      queries.map((query) => new Follower(runId, (connects) => gateways[(index + connects) % 2]!.url, { query })),
    );
    const counts = runIds.map(() => 0);
    let isOver = false;
    const producers = runIds.map(async (runId, index) => {
      while (!isOver) {
        const size = 1 + Math.floor(Math.random() * 20);
        await publishSurely(
          (attempt) => gateways[(index + attempt) % 2]!,
          runId,
          batch(counts[index]!, size, { kindOf }),
          600_000,
        );
        counts[index]! += size;
        await pause(Math.random() * 50);
      }
    });

    const faults: Record<string, () => Promise<unknown>> = {
      "Redis stopped": async () => {
        redis.pause();
        await pause(between(200, 4_000));
        redis.resume();
      },
      "Redis killed": async () => {
        await redis.kill9();
        await pause(between(0, 3_000));
        await redis.restart();
      },
      "Redis read-only": async () => {
        await redis.cli("REPLICAOF", "127.0.0.1", "1");
        await pause(between(200, 3_000));
        await redis.cli("REPLICAOF", "NO", "ONE");
      },
      "all its connections killed": async () => {
        await killClients(redis, "pubsub");
        await killClients(redis, "normal");
      },
      "its wake connections killed": () => killClients(redis, "pubsub"),
      "Redis paused for writes": () => redis.cli("CLIENT", "PAUSE", `${between(100, 2_500)}`, "WRITE"),
      "a gateway killed": async () => {
        const index = between(0, 2) as 0 | 1;
        const { port } = gateways[index];
        await gateways[index].kill9();
        gateways[index] = await start(["--port", `${port}`]);
      },
      "readers cut": async () => {
        for (const reader of followers.flat()) if (random() < 0.5) reader.cut();
      },
      "readers cut, twice": async () => {
        for (const reader of followers.flat()) reader.cut();
        await pause(between(0, 300));
        for (const reader of followers.flat()) reader.cut();
      },
    };
    const names = Object.keys(faults);
    const done: string[] = [];
    for (const until = performance.now() + seconds * 1_000; performance.now() < until; ) {
      const name = names[between(0, names.length)]!;
      done.push(name);
      await faults[name]!();
      await pause(between(0, 2_000));
    }
    isOver = true;
    await Promise.all(producers);

    const story = `seed ${seed}: ${done.join(", ")}`;
    for (const [index, readers] of followers.entries()) {
      const all = Array.from({ length: counts[index]! }, (_, n) => n);
      const [every, tools, none] = readers as [Follower, Follower, Follower];
      await every.untilAll(counts[index]!, RECOVERY_MS);
      const wanted = all.filter((n) => kindOf(n) === "tool");
      await tools.until("all of its kind", () => tools.numbers.length >= wanted.length, RECOVERY_MS);
      expect(every.numbers, story).toEqual(all);
      expect(tools.numbers, story).toEqual(wanted);
      expect(none.numbers, story).toEqual([]);
      for (const reader of readers) {
        expect(reader.faults, story).toEqual([]);
        expect(new Set(reader.reasons), `${story}; gaps ${JSON.stringify(reader.gaps)}`).toSatisfy(onlyOutages);
        await reader.stop();
      }
    }
  });
}

function onlyOutages(reasons: Set<string>): boolean {
  return [...reasons].every((reason) => reason === "outage");
}

async function killClients(redis: RedisServer, type: "normal" | "pubsub"): Promise<void> {
  await redis.cli("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
}

/** Numbers from 0 to 1 by a seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
