/** Readers that never read, on a run with 100 MB published: what they cost, and that nobody else notices. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { PacedReader } from "./paced-reader.ts";
import { batch, publishSurely } from "./producer.ts";
import { INSPECTED, settledMemory } from "./settled-memory.ts";

export interface StalledLoad {
  readonly stalled: number;
  readonly stallSeconds: number;
}

const RUN_ID = "heavy";
const EVENTS = 2_000;
const BATCH = 20;
/** Bytes of text in an event: 2,000 of them are 100 MB. */
const PADDING = 50_000;
/** Redis need not hold 300 MB for this. */
const LESS_HISTORY = { redis: { maxStreamLength: 2_500 } };
const MIB = 2 ** 20;
/** Longest delay of a neighbour's event. */
const DELAY_MS = 1_000;

export function describeStalledReaders({ stalled, stallSeconds }: StalledLoad): void {
  // What a process holds is read from /proc.
  describe.skipIf(process.platform !== "linux")(`${stalled} readers that never read, and one that does`, () => {
    let redis: RedisServer;
    let gateway: Gateway;

    beforeAll(async () => {
      redis = await startRedis();
      const flags = ["--stall-seconds", `${stallSeconds}`, "--max-subscribers-per-stream", `${stalled + 1}`];
      gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags, env: INSPECTED, config: LESS_HISTORY });
    });
    afterAll(async () => {
      await gateway?.stop();
      await redis?.stop();
    });

    test("each costs the process under 1 MB, delays nobody, and is closed", {
      timeout: (stallSeconds + 120) * 1_000,
    }, async () => {
      const neighbour = (await PacedReader.open(gateway, RUN_ID)).read();
      // The same load without them, so that what a busy process keeps for itself is not counted as theirs.
      await publishAll(gateway, neighbour, 0);
      await publishAll(gateway, neighbour, 1);
      const before = await settledMemory(gateway);
      const readers: PacedReader[] = [];
      for (let count = 0; count < stalled; count++) readers.push(await PacedReader.open(gateway, RUN_ID, { query: "?tail=0" }));
      const delayMs = await publishAll(gateway, neighbour, 2);
      await gateway.waitForMetric("penstock_backpressure_total", (count) => count >= stalled);
      const after = await settledMemory(gateway);
      expect((await gateway.metrics()).get("penstock_connections"), "they are all there").toBe(stalled + 1);
      const text = `${(before / MIB).toFixed(1)} MiB without, ${(after / MIB).toFixed(1)} MiB with`;
      expect((after - before) / stalled, `bytes for each: ${text}`).toBeLessThan(MIB);
      expect(delayMs, "no event came late because of them").toBeLessThan(DELAY_MS);
      expect(neighbour.numbers).toEqual(Array.from({ length: 3 * EVENTS }, (_, n) => n));
      expect(neighbour).toMatchObject({ gaps: [], faults: [], isOver: false });

      const full = await PacedReader.open(gateway, RUN_ID);
      expect(full.status, "their places are taken").toBe(503);
      full.close();
      const closed = 'penstock_connections_closed_total{reason="stalled"}';
      await gateway.waitForMetric(closed, (count) => count === stalled, (stallSeconds + 15) * 1_000);
      const next = await Promise.all(readers.map(() => PacedReader.open(gateway, RUN_ID, { query: "?tail=0" })));
      expect(
        next.map(({ status }) => status),
        "and are free again",
      ).toEqual(next.map(() => 200));
      expect(neighbour.isOver).toBe(false);
      for (const reader of [...readers, ...next, neighbour]) reader.close();
    });
  });
}

/** Publishes another 100 MB and waits until a reader has it. Returns the longest delay of an event. */
async function publishAll(gateway: Gateway, reader: PacedReader, round: number): Promise<number> {
  reader.maxDelayMs = 0;
  for (let first = round * EVENTS; first < (round + 1) * EVENTS; first += BATCH) {
    await publishSurely(() => gateway, RUN_ID, batch(first, BATCH, { padding: PADDING }));
  }
  await reader.until("all events", () => reader.numbers.length >= (round + 1) * EVENTS);
  return reader.maxDelayMs;
}
