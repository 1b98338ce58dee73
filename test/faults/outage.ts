/** Redis away, in the ways in which it goes: what publishers and readers of a gateway see of it, and that all goes on by itself. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { freePort, type RedisServer, startRedis } from "../support/redis-servers.ts";
import { Follower, type FollowerOptions } from "./follower.ts";
import { startCpuMeter } from "./process-usage.ts";
import { type Attempt, batch, publishSurely, tryPublish } from "./producer.ts";
import { untilReadiness } from "./readiness.ts";

export interface OutageLengths {
  /** Seconds of each: SIGSTOP, killed with -9, answering errors alone, refusing writes. */
  readonly stopped: number;
  readonly killed: number;
  readonly stale: number;
  readonly readOnly: number;
}

const SOCKET_TIMEOUT_SECONDS = 2;
/** A publish is answered this long after its deadline at the latest. */
const ANSWER_SLACK_MS = 500;
const HEARTBEAT_SECONDS = 1;
const MOST_CORES = 0.3;
/** The longest pause between two tries to reconnect, and some. */
const RECOVERY_MS = 45_000;

/** Less than there is before the outage: who begins at the beginning needs history, which cannot be read. */
const RING_EVENTS = 16;
/** Events before the outage, and after it. */
const BEFORE = 40;
const AFTER = 10;

/** The event that a producer repeats until it is confirmed. */
const REPEATED = 500;
/** Numbers of events whose publish is refused for good begin here: they may be stored all the same, once. */
const UNCONFIRMED = 1_000;

/** Runs whose readers come during the outage and want history: their tries must not fill the log. */
const CROWD = Array.from({ length: 50 }, (_, index) => `crowd-${index}`);

interface Trouble {
  /** What goes wrong, and what sets it right again. */
  begin(redis: RedisServer): Promise<void>;
  end(redis: RedisServer): Promise<void>;
  readonly seconds: number;
  /** Redis still answers reads, so nothing is late and the readers have nothing to hear of. */
  readonly readable?: boolean;
  /** A producer repeats one publish all the while; else nobody calls, and the gateway must find out by itself that Redis is back. */
  readonly producer?: boolean;
}

export function describeOutages(lengths: OutageLengths): void {
  let redis: RedisServer;
  let gateway: Gateway;
  let nowhere: number;

  beforeAll(async () => {
    redis = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    nowhere = await freePort();
    gateway = await startGateway({
      broker: "redis",
      redisUrl: redis.url,
      flags: ["--heartbeat-seconds", `${HEARTBEAT_SECONDS}`, "--ring-events", `${RING_EVENTS}`],
      config: { redis: { socketTimeoutSeconds: SOCKET_TIMEOUT_SECONDS } },
    });
    for (const runId of CROWD) await publishSurely(() => gateway, runId, batch(0, BEFORE));
  });
  afterAll(async () => {
    await gateway?.stop();
    await redis?.stop();
  });

  /** A replica of a master that cannot be reached takes no writes; whether it answers reads is a setting of its own. */
  const demote = async (staleReads: "yes" | "no"): Promise<void> => {
    await redis.cli("CONFIG", "SET", "replica-serve-stale-data", staleReads);
    await redis.cli("REPLICAOF", "127.0.0.1", `${nowhere}`);
  };
  const promote = async (): Promise<void> => {
    await redis.cli("REPLICAOF", "NO", "ONE");
  };

  const troubles: Record<string, Trouble> = {
    "stopped by SIGSTOP": {
      seconds: lengths.stopped,
      begin: async () => redis.pause(),
      end: async () => redis.resume(),
      producer: true,
    },
    "killed with -9 and started again": { seconds: lengths.killed, begin: () => redis.kill9(), end: () => redis.restart() },
    "a replica that answers nothing": { seconds: lengths.stale, begin: () => demote("no"), end: promote },
    "a replica that refuses writes": { seconds: lengths.readOnly, begin: () => demote("yes"), end: promote, readable: true },
  };

  describe.each(Object.entries(troubles))("Redis is %s", (name, trouble) => {
    const limitMs = trouble.seconds * 1_000 + 4 * RECOVERY_MS;
    test("publishes are refused in time, streams wait, and everything goes on by itself", { timeout: limitMs }, () =>
      goThrough(gateway, redis, trouble, name.replaceAll(/\W+/g, "-"), limitMs),
    );
  });
}

async function goThrough(gateway: Gateway, redis: RedisServer, trouble: Trouble, name: string, limitMs: number): Promise<void> {
  const runIds = { busy: `${name}-busy`, quiet: `${name}-quiet`, fresh: `${name}-fresh` };
  const follow = (runId: string, options: FollowerOptions = {}) => new Follower(runId, () => gateway.url, options);
  const publish = (runId: string, first: number, count: number) =>
    publishSurely(() => gateway, runId, batch(first, count, { kindOf }), limitMs);

  // What the trouble before left is over once an event gets through.
  const probe = follow(`${name}-probe`);
  await publish(`${name}-probe`, 0, 1);
  await probe.untilAll(1, RECOVERY_MS);
  await probe.stop();
  const before = { all: follow(runIds.busy), odd: follow(runIds.busy, { query: "?kinds=odd" }), quiet: follow(runIds.quiet) };
  await publish(runIds.busy, 0, BEFORE);
  await before.all.untilAll(BEFORE);
  await before.odd.until("the odd ones", () => before.odd.numbers.length === BEFORE / 2);
  await before.quiet.connected();
  const logged = lines(gateway).length;

  const repair = repairLater(trouble, redis);
  await trouble.begin(redis);
  const cpu = await startCpuMeter(gateway.pid);
  const refused = refuseAll(gateway, runIds.busy, performance.now() + trouble.seconds * 1_000);
  const repeated = trouble.producer ? publish(runIds.busy, REPEATED, 1) : null;
  const told = trouble.readable ? [] : ["outage"];
  await Promise.all(Object.values(before).map((reader) => hasHeard(reader, told)));
  if (!trouble.readable) await untilReadiness(gateway, 503);
  const late = {
    resumed: follow(runIds.busy, { lastEventId: before.all.lastEventId }),
    fromStart: follow(runIds.busy),
    fresh: follow(runIds.fresh),
  };
  const crowd = CROWD.map((runId) => follow(runId));
  const readers = [...Object.values(before), ...Object.values(late), ...crowd];
  await Promise.all(readers.map((reader) => hasHeard(reader, told)));
  expect((await fetch(`http://127.0.0.1:${gateway.adminPort}/healthz`)).status, "it is alive all the time").toBe(200);
  for (const attempt of await refused) expectRefusal(attempt);
  expect(await cpu.cores(), "cores used during the outage").toBeLessThan(MOST_CORES);
  await Promise.all(readers.map((reader) => hasHeard(reader, told)));

  await repair();
  await untilReadiness(gateway, 200, RECOVERY_MS);
  await repeated;
  await publish(runIds.busy, BEFORE, AFTER);
  for (const runId of [runIds.quiet, runIds.fresh]) await publish(runId, 0, AFTER);
  const all = BEFORE + AFTER;
  for (const reader of [before.all, late.fromStart]) await reader.untilAll(all, RECOVERY_MS);
  for (const reader of crowd) await reader.untilAll(BEFORE, RECOVERY_MS);
  for (const reader of [before.quiet, late.fresh]) await reader.untilAll(AFTER, RECOVERY_MS);
  await before.odd.until("all odd ones", () => before.odd.missing(all).length === all / 2, RECOVERY_MS);
  await late.resumed.until("all behind its place", () => late.resumed.missing(all).length === BEFORE, RECOVERY_MS);
  // Each try may have been stored when Redis woke up, but readers get one. An event that comes twice is among the faults.
  if (repeated !== null) expect(before.all.numbers).toContain(REPEATED);

  for (const reader of readers) {
    expect(reader.reasons, reader.story()).toEqual(told);
    expect(reader.faults).toEqual([]);
    expect(reader.connects, "no stream was closed").toBe(1);
    await reader.stop();
  }
  expect(
    lines(gateway).slice(logged).length,
    `lines in the log: ${lines(gateway)
      .slice(logged, logged + 20)
      .join("\n")}`,
  ).toBeLessThan(10);
}

/** A stream that is open, lives, and was told this and no more. */
async function hasHeard(reader: Follower, told: readonly string[]): Promise<void> {
  await reader.connected();
  const { heartbeats } = reader;
  await reader.until("a heartbeat, and what there is to tell", () => {
    return reader.heartbeats > heartbeats && reader.gaps.length >= told.length;
  });
  expect(reader.reasons, reader.story()).toEqual(told);
}

function expectRefusal({ answer, milliseconds }: Attempt): void {
  expect(answer.status).toBe(503);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(milliseconds).toBeLessThan(SOCKET_TIMEOUT_SECONDS * 1_000 + ANSWER_SLACK_MS);
}

function kindOf(n: number): string {
  return n % 2 === 1 ? "odd" : "even";
}

/** Publishes one event after the other until the time is over. */
async function refuseAll(gateway: Gateway, runId: string, until: number): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  while (performance.now() < until) {
    attempts.push(await tryPublish(gateway, runId, batch(UNCONFIRMED + attempts.length, 1)));
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return attempts;
}

function lines(gateway: Gateway): string[] {
  return gateway.logs().split("\n").filter(Boolean);
}

/** Sets right what a failed test has left. */
function repairLater(trouble: Trouble, redis: RedisServer): () => Promise<void> {
  let isRepaired = false;
  const repair = async (): Promise<void> => {
    if (isRepaired) return;
    isRepaired = true;
    await trouble.end(redis);
  };
  onTestFinished(repair);
  return repair;
}
