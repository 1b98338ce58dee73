/** Clients that lose their connection, or their gateway, and go on elsewhere with their last id. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { Follower } from "./follower.ts";
import { batch, publishSurely } from "./producer.ts";

export interface ResumeLoad {
  readonly events: number;
  readonly cuts: number;
  readonly kills: number;
  readonly limitMs: number;
}

const BATCH = 20;
const KINDS = ["token", "progress", "tool", "step"];

const kindOf = (n: number): string => KINDS[n % KINDS.length]!;

export function describeResumes({ events, cuts, kills, limitMs }: ResumeLoad): void {
  describe("two gateways on one Redis", () => {
    let redis: RedisServer;
    let gateways: [Gateway, Gateway];
    // A reader of which nothing comes through its filter is cut before it hears of its place: it needs all of history.
    const config = { redis: { maxStreamLength: 2 * events } };
    const start = (flags: readonly string[] = []) => startGateway({ broker: "redis", redisUrl: redis.url, flags, config });

    beforeAll(async () => {
      redis = await startRedis();
      gateways = await Promise.all([start(), start()]);
    });
    afterAll(async () => {
      for (const gateway of gateways ?? []) await gateway.kill9();
      await redis?.stop();
    });

    test(`a client cut ${cuts} times that comes back to the other one each time gets ${events} events once each`, {
      timeout: limitMs,
    }, async () => {
      const runId = "cut";
      const alternate = (connects: number): string => gateways[connects % 2]!.url;
      const all = new Follower(runId, alternate);
      const filtered = new Follower(runId, alternate, { query: "?kinds=tool" });
      const none = new Follower(runId, alternate, { query: "?kinds=never" });
      const readers = [all, filtered, none];
      for (const reader of readers) await reader.connected();
      for (let first = 0, cut = 0; first < events; first += BATCH) {
        const gateway = gateways[(first / BATCH) % 2]!;
        await publishSurely(() => gateway, runId, batch(first, BATCH, { kindOf }));
        if (cut >= ((first + BATCH) / events) * cuts) continue;
        cut++;
        for (const reader of readers) {
          await reader.connected();
          reader.cut();
          await reader.until("the connection is gone", () => reader.breaks >= cut);
        }
      }
      await all.untilAll(events);
      const wanted = events / KINDS.length;
      await filtered.until(`its ${wanted} events`, () => filtered.numbers.length >= wanted);
      expect(all.numbers).toEqual(numbers(events));
      expect(filtered.numbers).toEqual(numbers(events).filter((n) => kindOf(n) === "tool"));
      for (const reader of readers) {
        expect(reader.breaks).toBe(cuts);
        expect(reader.gaps).toEqual([]);
        expect(reader.faults).toEqual([]);
      }
      const { status } = await fetch(gateways[0].runUrl(runId, "/end"), { method: "POST" });
      expect(status).toBe(200);
      for (const reader of readers) await reader.until("the end", () => reader.ended);
      expect(none.numbers).toEqual([]);
      for (const reader of readers) await reader.stop();
    });

    test(`a gateway killed with -9 ${kills} times loses its clients nothing, nor its producer`, {
      timeout: limitMs,
    }, async () => {
      const runId = "killed";
      const [survivor] = gateways;
      let victim = gateways[1];
      const stays = new Follower(runId, () => survivor.url);
      const readers = Array.from({ length: 10 }, (_, index) =>
        index % 2 === 0
          ? new Follower(runId, () => victim.url)
          : new Follower(runId, () => victim.url, { query: "?kinds=tool&kinds=step" }),
      );
      for (const reader of [stays, ...readers]) await reader.connected();
      let killing: Promise<void> | null = null;
      for (let first = 0, killed = 0; first < events; first += BATCH) {
        // The producer of every other batch does not know of the fault, and repeats until it is confirmed.
        const publishing = publishSurely(
          () => ((first / BATCH) % 2 === 0 ? survivor : victim),
          runId,
          batch(first, BATCH, { kindOf }),
        );
        if (killed < ((first + BATCH) / events) * kills) {
          killed++;
          await killing;
          killing = replace();
        }
        await publishing;
      }
      await killing;
      for (const reader of [stays, ...readers.filter((_, index) => index % 2 === 0)]) await reader.untilAll(events);
      const picked = numbers(events).filter((n) => ["tool", "step"].includes(kindOf(n)));
      for (const [index, reader] of readers.entries()) {
        if (index % 2 === 1) await reader.until("its events", () => reader.numbers.length >= picked.length);
        expect(reader.numbers).toEqual(index % 2 === 0 ? numbers(events) : picked);
        expect(reader.breaks).toBe(kills);
      }
      for (const reader of [stays, ...readers]) {
        expect(reader.gaps).toEqual([]);
        expect(reader.faults).toEqual([]);
        await reader.stop();
      }
      expect(stays.connects).toBe(1);

      async function replace(): Promise<void> {
        await victim.kill9();
        victim = await start(["--port", `${victim.port}`]);
        gateways[1] = victim;
        for (const reader of readers) await reader.connected();
      }
    });
  });
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, number) => number);
}
