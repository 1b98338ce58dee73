/** What every broker must do, as one suite: `describeBrokerContract("redis", …)` in a test file runs it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import { IdempotencyConflictError } from "../errors.ts";
import type { Broker } from "./broker.ts";
import { describeLoss } from "./contract-loss.ts";
import { type BrokerUnderTest, expectRising, frames, publish, Recorder, readAll, texts, WAIT } from "./contract-support.ts";

export type { BrokerUnderTest } from "./contract-support.ts";

export function describeBrokerContract(name: string, setUp: () => Promise<BrokerUnderTest>): void {
  describe(`broker contract: ${name}`, () => {
    let under: BrokerUnderTest;
    let broker: Broker;
    beforeAll(async () => {
      under = await setUp();
      broker = under.broker;
    });
    afterAll(() => under?.close());

    describe("publish and history", () => {
      test("a batch is stored in order, byte for byte, under rising ids", async () => {
        const runId = randomUUID();
        const result = await broker.publish({ runId, entries: frames(20), idempotency: null });
        const stored = await readAll(broker, runId);
        expect(texts(stored)).toEqual(texts(frames(20)));
        expect(result).toEqual({ count: 20, lastId: stored.at(-1)?.id });
        expectRising(stored);
      });

      test("batches follow one another, also within one millisecond", async () => {
        const runId = randomUUID();
        for (let batch = 0; batch < 10; batch++)
          await broker.publish({ runId, entries: frames(3, batch * 3), idempotency: null });
        const stored = await readAll(broker, runId);
        expect(texts(stored)).toEqual(texts(frames(30)));
        expectRising(stored);
      });

      test("an empty batch stores nothing and has no last id", async () => {
        const runId = randomUUID();
        expect(await broker.publish({ runId, entries: [], idempotency: null })).toEqual({ count: 0, lastId: null });
        expect((await broker.readPage(runId, null, 10)).entries).toEqual([]);
      });

      test("runs do not see each other", async () => {
        const [one, other] = [randomUUID(), randomUUID()];
        await publish(broker, one, 2);
        await publish(broker, other, 1, 50);
        expect(texts(await readAll(broker, one))).toEqual(texts(frames(2)));
      });

      test("a run that nobody has heard of is an empty page without a place", async () => {
        const page = await broker.readPage(randomUUID(), null, 10);
        expect(page).toEqual({ gap: null, entries: [], next: null, atHead: true, newest: null, endedId: null });
      });

      test("pages end at their limit and go on behind their last entry", async () => {
        const runId = randomUUID();
        const ids = await publish(broker, runId, 10);
        const first = await broker.readPage(runId, null, 6);
        expect(first.entries.map((entry) => entry.id)).toEqual(ids.slice(0, 6));
        expect(first).toMatchObject({ gap: null, next: { id: ids[5], exact: true }, newest: ids[9], atHead: false });
        const second = await broker.readPage(runId, first.next, 6);
        expect(second.entries.map((entry) => entry.id)).toEqual(ids.slice(6));
        expect(second).toMatchObject({ gap: null, next: { id: ids[9], exact: true }, atHead: true });
        const third = await broker.readPage(runId, second.next, 6);
        expect(third).toMatchObject({ gap: null, entries: [], next: { id: ids[9], exact: true }, atHead: true });
      });

      test("a since need not exist: what is later comes, without a gap", async () => {
        const runId = randomUUID();
        const ids = await publish(broker, runId, 3);
        const early = await broker.readPage(runId, { id: "5-0", exact: false }, 10);
        expect(early).toMatchObject({ gap: null });
        expect(early.entries.map((entry) => entry.id)).toEqual(ids);
        const late = { id: "99999999999999-0", exact: false };
        expect(await broker.readPage(runId, late, 10)).toMatchObject({ gap: null, entries: [], next: late, atHead: true });
      });

      test("a tail is found by its length", async () => {
        const runId = randomUUID();
        expect(await broker.findTail(runId, 3)).toBeNull();
        const ids = await publish(broker, runId, 5);
        expect(await broker.findTail(runId, 2)).toEqual({ id: ids[2], exact: true });
        expect(await broker.findTail(runId, 0)).toEqual({ id: ids[4], exact: true });
        expect(await broker.findTail(runId, 5)).toBeNull();
        expect(await broker.findTail(runId, 6)).toBeNull();
      });
    });

    describe("watch", () => {
      test("a watch begins with what is there and goes on with what comes, each entry once", async () => {
        const runId = randomUUID();
        await publish(broker, runId, 4);
        const reader = new Recorder();
        const watch = broker.watch(runId, reader);
        expect(reader.calls).toEqual([]);
        await reader.until(() => reader.tail !== null);
        const complete = under.knowsTrims !== false;
        expect(reader.tail).toMatchObject({ complete, after: null, endedId: null, newest: reader.entries.at(-1)?.id });
        for (let batch = 0; batch < 5; batch++)
          await broker.publish({ runId, entries: frames(2, 4 + batch * 2), idempotency: null });
        await reader.until(() => reader.entries.length >= 14);
        watch.close();
        expect(texts(reader.entries)).toEqual(texts(frames(14)));
        expectRising(reader.entries);
        expect(reader.calls.filter((call) => call !== "entries")).toEqual(["tail"]);
      });

      test("a watch may come before the run", async () => {
        const runId = randomUUID();
        const reader = new Recorder();
        const watch = broker.watch(runId, reader);
        await reader.until(() => reader.tail !== null);
        expect(reader.tail).toEqual({ entries: [], complete: true, after: null, newest: null, endedId: null });
        await publish(broker, runId, 3);
        await reader.until(() => reader.entries.length >= 3);
        watch.close();
        expect(texts(reader.entries)).toEqual(texts(frames(3)));
      });

      test("a long history is told by its youngest entries and the id before them", async () => {
        const runId = randomUUID();
        const ids = await publish(broker, runId, under.tailEntries + 5);
        const reader = new Recorder();
        const watch = broker.watch(runId, reader);
        await reader.until(() => reader.tail !== null);
        watch.close();
        expect(reader.tail?.complete).toBe(false);
        expect(reader.entries.map((entry) => entry.id)).toEqual(ids.slice(-reader.entries.length));
        expect(reader.entries.length).toBeGreaterThan(0);
        const before = ids[ids.length - reader.entries.length - 1];
        expect([before, null]).toContain(reader.tail?.after);
      });

      test("several watches of a run hear the same, and a closed one nothing more", async () => {
        const runId = randomUUID();
        const readers = [new Recorder(), new Recorder(), new Recorder()];
        const watches = readers.map((reader) => broker.watch(runId, reader));
        await publish(broker, runId, 2);
        for (const reader of readers) await reader.until(() => reader.entries.length >= 2);
        watches[0]?.close();
        watches[0]?.close();
        await publish(broker, runId, 2, 2);
        for (const reader of readers.slice(1)) await reader.until(() => reader.entries.length >= 4);
        for (const watch of watches) watch.close();
        expect(readers.map((reader) => texts(reader.entries).length)).toEqual([2, 4, 4]);
      });

      test("a watch that is closed at once hears nothing", async () => {
        const runId = randomUUID();
        const [closed, open] = [new Recorder(), new Recorder()];
        broker.watch(runId, closed).close();
        const watch = broker.watch(runId, open);
        await publish(broker, runId, 1);
        await open.until(() => open.entries.length >= 1);
        watch.close();
        expect(closed.calls).toEqual([]);
      });

      test("publishes at the same time come to all watches in the order of the stream", async () => {
        const runId = randomUUID();
        const reader = new Recorder();
        const watch = broker.watch(runId, reader);
        await reader.until(() => reader.tail !== null);
        await Promise.all(
          Array.from({ length: 50 }, (_, n) => broker.publish({ runId, entries: frames(3, n * 3), idempotency: null })),
        );
        await reader.until(() => reader.entries.length >= 150);
        watch.close();
        expect(reader.entries.map((entry) => entry.id)).toEqual((await readAll(broker, runId)).map((entry) => entry.id));
        expectRising(reader.entries);
      });
    });

    describeLoss(() => under);

    describe("the end", () => {
      test("an end is an entry of the stream and a mark beside it", async () => {
        const runId = randomUUID();
        await publish(broker, runId, 2);
        const { lastId } = await broker.end(runId);
        const page = await broker.readPage(runId, null, 10);
        expect(page.entries.at(-1)?.id).toBe(lastId);
        expect(texts(page.entries).at(-1)).toBe('{"type":"end"}');
        expect(page.endedId).toBe(lastId);
      });

      test("a run may end before it held anything", async () => {
        const runId = randomUUID();
        const { lastId } = await broker.end(runId);
        expect((await broker.readPage(runId, null, 10)).entries.map((entry) => entry.id)).toEqual([lastId]);
      });

      test("ending twice stores one end", async () => {
        const runId = randomUUID();
        await publish(broker, runId, 1);
        const first = await broker.end(runId);
        expect(await broker.end(runId)).toEqual(first);
        expect(await readAll(broker, runId)).toHaveLength(2);
      });

      test("a run that went on can end again", async () => {
        const runId = randomUUID();
        const first = await broker.end(runId);
        await publish(broker, runId, 1);
        const second = await broker.end(runId);
        expect(compareEventIds(second.lastId, first.lastId)).toBeGreaterThan(0);
        expect((await broker.readPage(runId, null, 10)).endedId).toBe(second.lastId);
      });

      test("the mark outlives the stream, and an end of such a run stores nothing", async () => {
        const runId = randomUUID();
        await publish(broker, runId, 1);
        const { lastId } = await broker.end(runId);
        await under.delete(runId);
        expect(await broker.readPage(runId, null, 10)).toMatchObject({ entries: [], endedId: lastId, gap: null });
        const reader = new Recorder();
        const watch = broker.watch(runId, reader);
        await reader.until(() => reader.tail !== null);
        watch.close();
        expect(reader.tail).toMatchObject({ entries: [], endedId: lastId, complete: false });
        expect(await broker.end(runId)).toEqual({ lastId });
        expect((await broker.readPage(runId, null, 10)).entries).toEqual([]);
      });

      test("a mark can be set by whoever saw the end, and removed when the run goes on", async () => {
        const runId = randomUUID();
        const [id] = await publish(broker, runId, 1);
        const endedId = async () => (await broker.readPage(runId, null, 10)).endedId;
        broker.markEnded(runId, id as EventId);
        await vi.waitFor(async () => expect(await endedId()).toBe(id), WAIT);
        broker.clearEnded(runId);
        await vi.waitFor(async () => expect(await endedId()).toBeNull(), WAIT);
      });

      test("watches hear the end entry like any other", async () => {
        const runId = randomUUID();
        const reader = new Recorder();
        const watch = broker.watch(runId, reader);
        const { lastId } = await broker.end(runId);
        await reader.until(() => reader.entries.length >= 1);
        watch.close();
        expect(reader.entries.map((entry) => entry.id)).toEqual([lastId]);
      });
    });

    describe("idempotency", () => {
      const idempotency = (key: string, bodyHash = "a".repeat(64), scope = "someone") => ({ scope, key, bodyHash });

      test("a repeat gets the first answer, and nothing is stored twice", async () => {
        const runId = randomUUID();
        const request = { runId, entries: frames(3), idempotency: idempotency("k1") };
        const first = await broker.publish(request);
        expect(await broker.publish(request)).toEqual(first);
        expect(await readAll(broker, runId)).toHaveLength(3);
      });

      test("repeats at the same time store once", async () => {
        const runId = randomUUID();
        const request = { runId, entries: frames(3), idempotency: idempotency("k1") };
        const answers = await Promise.all(Array.from({ length: 5 }, () => broker.publish(request)));
        expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
        expect(await readAll(broker, runId)).toHaveLength(3);
      });

      test("the same key with another body is a conflict, and nothing is stored", async () => {
        const runId = randomUUID();
        await broker.publish({ runId, entries: frames(1), idempotency: idempotency("k1") });
        const other = { runId, entries: frames(1, 9), idempotency: idempotency("k1", "b".repeat(64)) };
        await expect(broker.publish(other)).rejects.toBeInstanceOf(IdempotencyConflictError);
        expect(await readAll(broker, runId)).toHaveLength(1);
      });

      test("keys of other runs, callers and spellings are others", async () => {
        const [runId, otherRun] = [randomUUID(), randomUUID()];
        await broker.publish({ runId, entries: frames(1), idempotency: idempotency("k1") });
        await broker.publish({ runId, entries: frames(1), idempotency: idempotency("K1") });
        await broker.publish({ runId, entries: frames(1), idempotency: idempotency("k1", undefined, "else") });
        await broker.publish({ runId: otherRun, entries: frames(1), idempotency: idempotency("k1", "b".repeat(64)) });
        expect(await readAll(broker, runId)).toHaveLength(3);
        expect(await readAll(broker, otherRun)).toHaveLength(1);
      });
    });
  });
}
