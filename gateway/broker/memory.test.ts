import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import { BrokerUnavailableError } from "../errors.ts";
import type { BrokerContext, HistoryPage, Position, RunObserver, StoredEntry } from "./broker.ts";
import { describeBrokerContract } from "./broker-contract.ts";
import { createMemoryBroker, type MemoryBroker } from "./memory.ts";

const MINUTE = 60_000;
const errors: string[] = [];
const context: BrokerContext = {
  deploymentId: null,
  tailEntries: 10,
  log: { info() {}, warn() {}, error: (_fields, message) => errors.push(message) },
  metrics: {
    redisConnected() {},
    redisReconnect() {},
    redisError() {},
    redisReads() {},
    readMode() {},
    duplicateDropped() {},
  },
};

describeBrokerContract("memory", async () => {
  const broker = createMemoryBroker({ totalBytes: 64 << 20, maxStreamLength: 10_000, streamTtlSeconds: 3600 }, context);
  await broker.start();
  return {
    broker,
    tailEntries: context.tailEntries,
    countsMissed: true,
    trim: (runId, keep) => broker.trim(runId, keep),
    delete: (runId) => broker.delete(runId),
    close: () => broker.close(),
  };
});

describe("memory broker", () => {
  /** A broker with a clock that stands still until it is moved. */
  function withClock(options: { totalBytes?: number; maxStreamLength?: number; streamTtlSeconds?: number } = {}) {
    const clock = { wall: 1_700_000_000_000, monotonic: 0 };
    const broker = createMemoryBroker(
      {
        totalBytes: 1 << 20,
        maxStreamLength: 1000,
        streamTtlSeconds: 60,
        ...options,
        now: () => clock.wall,
        monotonic: () => clock.monotonic,
      },
      context,
    );
    const wait = (ms: number) => {
      clock.wall += ms;
      clock.monotonic += ms;
    };
    return { broker, clock, wait };
  }

  test("ids look like Redis' own: the time, then a number from 0", async () => {
    const { broker, wait } = withClock();
    expect(await publish(broker, "run", 3)).toBe("1700000000000-2");
    expect(await publish(broker, "run", 1)).toBe("1700000000000-3");
    wait(5);
    expect(await publish(broker, "run", 1)).toBe("1700000000005-0");
  });

  test("ids rise though the clock goes back", async () => {
    const { broker, clock } = withClock();
    await publish(broker, "run", 1);
    clock.wall -= 10 * MINUTE;
    expect(await publish(broker, "run", 2)).toBe("1700000000000-2");
  });

  test("a run that was dropped and begun anew never gives out an id twice", async () => {
    const { broker } = withClock();
    await publish(broker, "run", 3);
    broker.delete("run");
    expect(await publish(broker, "run", 1)).toBe("1700000000001-0");
  });

  test("a run lives as long as the last publish says, and reading does not prolong it", async () => {
    const { broker, wait } = withClock({ streamTtlSeconds: 60 });
    await publish(broker, "run", 1);
    wait(50_000);
    await publish(broker, "run", 1);
    wait(59_999);
    expect((await broker.readPage("run", null, 10)).entries).toHaveLength(2);
    wait(1);
    expect(await broker.readPage("run", null, 10)).toMatchObject({ entries: [], newest: null, next: null });
  });

  test("only the youngest entries are kept, and a gap counts the others", async () => {
    const { broker } = withClock({ maxStreamLength: 5 });
    await publish(broker, "run", 3);
    await publish(broker, "run", 6);
    const page = await broker.readPage("run", { id: "1700000000000-1", exact: true }, 100);
    expect(page.gap).toEqual({ reason: "retention", from: "1700000000000-1", to: "1700000000000-4", missed: 2 });
    expect(page.entries).toHaveLength(5);
  });

  test("a place directly before the oldest kept entry has lost nothing", async () => {
    const { broker } = withClock({ maxStreamLength: 5 });
    await publish(broker, "run", 8);
    const page = await broker.readPage("run", { id: "1700000000000-2", exact: true }, 100);
    expect(page.gap).toBeNull();
    expect(page.entries).toHaveLength(5);
  });

  test("a place so old that nobody remembers it is a gap of unknown size", async () => {
    const { broker } = withClock({ maxStreamLength: 5 });
    for (let n = 0; n < 4; n++) await publish(broker, "run", 5);
    const page = await broker.readPage("run", { id: "1700000000000-2", exact: true }, 100);
    expect(page.gap).toEqual({ reason: "retention", from: "1700000000000-2", to: "1700000000000-15", missed: null });
  });

  test("a watch hears all of a batch that is longer than what is kept", async () => {
    const { broker } = withClock({ maxStreamLength: 5 });
    const heard: StoredEntry[] = [];
    broker.watch("run", observer({ onEntries: (entries) => heard.push(...entries) }));
    await nextTurn();
    await publish(broker, "run", 20);
    await nextTurn();
    expect(heard).toHaveLength(20);
  });

  test("when memory is full the coldest run is cut first, and its readers are told exactly how much", async () => {
    const { broker, wait } = withClock({ totalBytes: 100_000 });
    await publish(broker, "cold", 20, 1000);
    wait(1);
    await publish(broker, "warm", 20, 1000);
    wait(1);
    await publish(broker, "hot", 65, 1000);
    const cold = await broker.readPage("cold", { id: "1700000000000-4", exact: true }, 100);
    expect(cold).toMatchObject({ entries: [], gap: { reason: "retention", from: "1700000000000-4", to: null, missed: 15 } });
    const hot = await broker.readPage("hot", { id: "1700000000002-0", exact: true }, 100);
    expect(hot).toMatchObject({ gap: null });
    expect(hot.entries).toHaveLength(64);
    const warm = await broker.readPage("warm", { id: "1700000000001-0", exact: true }, 100);
    expect(warm.entries.length).toBeGreaterThan(0);
    expect((warm.gap?.missed ?? 0) + warm.entries.length).toBe(19);
  });

  test("a single run that outgrows everything is cut at its own start", async () => {
    const { broker } = withClock({ totalBytes: 50_000 });
    await publish(broker, "run", 200, 1000);
    const page = await broker.readPage("run", null, 1000);
    expect(page.entries.length).toBeGreaterThan(10);
    expect(page.entries.at(-1)?.id).toBe("1700000000000-199");
    expect(storedBytes(broker)).toBeLessThanOrEqual(50_000);
  });

  test("an entry larger than all there is room for is still kept until the next", async () => {
    const { broker } = withClock({ totalBytes: 500 });
    await publish(broker, "run", 1, 1000);
    expect((await broker.readPage("run", null, 10)).entries).toHaveLength(1);
    await publish(broker, "run", 1, 1000);
    expect((await broker.readPage("run", null, 10)).entries).toHaveLength(1);
  });

  test("memory stays within its bound whatever is published", async () => {
    const { broker, wait } = withClock({ totalBytes: 200_000, streamTtlSeconds: 1000 });
    for (let n = 0; n < 500; n++) {
      wait(1);
      await publish(broker, `run-${n % 50}`, 1 + (n % 7), (n * 37) % 3000);
      if (n % 10 === 0) await broker.end(`run-${n}`);
      expect(storedBytes(broker)).toBeLessThanOrEqual(200_000);
    }
  });

  test("a run that was cut empty goes on where it was", async () => {
    const { broker, wait } = withClock({ totalBytes: 100_000 });
    await publish(broker, "cold", 5, 1000);
    wait(1);
    await publish(broker, "hot", 83, 1000);
    wait(1);
    await publish(broker, "cold", 1, 1000);
    const page = await broker.readPage("cold", { id: "1700000000000-1", exact: true }, 10);
    expect(page.gap).toEqual({ reason: "retention", from: "1700000000000-1", to: "1700000000002-0", missed: 3 });
  });

  test("an answer is remembered for ten minutes", async () => {
    const { broker, wait } = withClock({ streamTtlSeconds: 3600 });
    const request = { runId: "run", entries: [frame(0)], idempotency: { scope: "a", key: "k", bodyHash: "h" } };
    const first = await broker.publish(request);
    wait(10 * MINUTE - 1);
    expect(await broker.publish(request)).toEqual(first);
    wait(1);
    expect(await broker.publish(request)).not.toEqual(first);
  });

  test("the mark of an end outlives the stream by a day", async () => {
    const { broker, wait } = withClock({ streamTtlSeconds: 60 });
    const { lastId } = await broker.end("run");
    wait(24 * 60 * MINUTE - 1);
    expect(await broker.readPage("run", null, 10)).toMatchObject({ entries: [], endedId: lastId });
    wait(1);
    expect(await broker.readPage("run", null, 10)).toMatchObject({ entries: [], endedId: null });
  });

  test("a straggler leaves the mark, a later entry takes it away though nobody watches", async () => {
    const { broker, wait } = withClock();
    const { lastId } = await broker.end("run");
    wait(5000);
    await publish(broker, "run", 1);
    expect((await broker.readPage("run", null, 10)).endedId).toBe(lastId);
    wait(1);
    await publish(broker, "run", 1);
    expect((await broker.readPage("run", null, 10)).endedId).toBeNull();
  });

  test("a since before the mark of a run that is gone is a gap, one behind it is none", async () => {
    const { broker, wait } = withClock({ streamTtlSeconds: 60 });
    await broker.end("run");
    wait(2 * MINUTE);
    expect((await broker.readPage("run", { id: "1699999999999-0", exact: false }, 10)).gap).toMatchObject({
      reason: "retention",
      to: null,
    });
    expect((await broker.readPage("run", { id: "1700000000001-0", exact: false }, 10)).gap).toBeNull();
  });

  test("watches hear nothing inside publish, and together what one turn brought", async () => {
    const { broker } = withClock();
    const heard: number[] = [];
    broker.watch("run", observer({ onEntries: (entries) => heard.push(entries.length) }));
    await nextTurn();
    await publish(broker, "run", 2);
    await publish(broker, "run", 3);
    expect(heard).toEqual([]);
    await nextTurn();
    expect(heard).toEqual([5]);
  });

  test("a watch that another closes on what both were to hear hears it no more", async () => {
    const { broker } = withClock();
    const heard: string[] = [];
    broker.watch(
      "run",
      observer({
        onEntries: () => {
          heard.push("first");
          second.close();
        },
      }),
    );
    const second = broker.watch("run", observer({ onEntries: () => heard.push("second") }));
    await nextTurn();
    await publish(broker, "run", 1);
    await nextTurn();
    expect(heard).toEqual(["first"]);
  });

  test("a watch that throws is logged and does not keep the others from hearing", async () => {
    const { broker } = withClock();
    const heard: EventId[] = [];
    const fail = () => {
      throw new Error("a bug");
    };
    broker.watch("run", observer({ onTail: fail, onEntries: fail }));
    broker.watch("run", observer({ onEntries: (entries) => heard.push(...entries.map((entry) => entry.id)) }));
    errors.length = 0;
    await nextTurn();
    await publish(broker, "run", 1);
    await nextTurn();
    expect(heard).toHaveLength(1);
    expect(errors).toHaveLength(2);
  });

  test("a closed broker stores nothing and says so", async () => {
    const { broker } = withClock();
    await broker.close();
    await expect(publish(broker, "run", 1)).rejects.toBeInstanceOf(BrokerUnavailableError);
    expect(broker.health()).toMatchObject({ readable: false, writable: false });
  });
});

describe("any reader of the memory broker", () => {
  type Step = { do: "publish" | "crowd" | "trim" | "wait" | "read"; count: number };
  const anyStep: fc.Arbitrary<Step> = fc.record({
    do: fc.constantFrom("publish", "publish", "read", "read", "trim", "wait", "crowd"),
    count: fc.integer({ min: 1, max: 12 }),
  });

  test("gets every entry behind its place once, or is told how many are missing", async () => {
    let gaps = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
        const clock = { wall: 1_700_000_000_000, monotonic: 0 };
        const broker = createMemoryBroker(
          {
            totalBytes: 20_000,
            maxStreamLength: 20,
            streamTtlSeconds: 3600,
            now: () => clock.wall,
            monotonic: () => clock.monotonic,
          },
          context,
        );
        const history: EventId[] = [];
        let position: Position | null = null;
        let place = 0;
        for (const step of steps) {
          if (step.do === "publish") history.push(...idsOf(await publish(broker, "run", step.count, 300), step.count));
          if (step.do === "crowd") await publish(broker, "other", step.count, 1500);
          if (step.do === "trim") broker.trim("run", step.count - 1);
          if (step.do === "wait") clock.wall += step.count - 3;
          if (step.do !== "read") continue;
          const page: HistoryPage = await broker.readPage("run", position, step.count);
          const oldest = page.entries[0] === undefined ? history.length : history.indexOf(page.entries[0].id);
          const skipped = oldest - place;
          if (position === null) {
            expect(page.gap).toBeNull();
          } else if (skipped === 0) {
            expect(page.gap).toBeNull();
          } else {
            gaps++;
            expect(page.gap).toMatchObject({ reason: "retention", from: history[place - 1], to: history[oldest] ?? null });
            expect([skipped, null]).toContain(page.gap?.missed);
          }
          expect(page.entries.map((entry) => entry.id)).toEqual(history.slice(oldest, oldest + page.entries.length));
          if (page.next === null) continue;
          place = oldest + page.entries.length;
          position = page.next;
          expect(position.id).toBe(history[place - 1]);
        }
        expect(new Set(history).size).toBe(history.length);
        expect([...history].sort(compareEventIds)).toEqual(history);
      }),
      { numRuns: 500 },
    );
    expect(gaps).toBeGreaterThan(0);
  });

  /** The ids of a batch, by its last. */
  function idsOf(lastId: EventId | null, count: number): EventId[] {
    const [milliseconds, sequence] = (lastId as EventId).split("-") as [string, string];
    return Array.from({ length: count }, (_, n) => `${milliseconds}-${Number(sequence) - count + 1 + n}`);
  }
});

async function publish(broker: MemoryBroker, runId: string, count: number, bytes = 0): Promise<EventId | null> {
  const entries = Array.from({ length: count }, (_, n) => frame(n, bytes));
  return (await broker.publish({ runId, entries, idempotency: null })).lastId;
}

function frame(n: number, bytes = 0): Buffer {
  return Buffer.from(`{"type":"event","event":{"kind":"k","payload":{"n":${n}}}}`.padEnd(bytes, " "));
}

function observer(parts: Partial<RunObserver>): RunObserver {
  return {
    onTail() {},
    onEntries() {},
    onGap() {},
    onMark() {},
    onOutage() {},
    onRecovered() {},
    hasSeen: () => false,
    ...parts,
  };
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

function storedBytes(broker: MemoryBroker): number {
  return Number(/(\d+) of/.exec(broker.health().detail)?.[1]);
}
