/** The part of the broker contract that tells what was lost: gaps, their reasons and bounds. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type EventId, millisecondsOf, ZERO_ID } from "../../protocol/event-id.ts";
import type { Gap } from "./broker.ts";
import { type BrokerUnderTest, publish } from "./contract-support.ts";

export function describeLoss(under: () => BrokerUnderTest): void {
  describe("what was lost", () => {
    test("a held place that was trimmed away is a retention gap with both bounds", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 8);
      await under().trim(runId, 3);
      const page = await under().broker.readPage(runId, { id: ids[1] as EventId, exact: true }, 10);
      expect(page.entries.map((entry) => entry.id)).toEqual(ids.slice(5));
      expectGap(page.gap, { reason: "retention", from: ids[1] as EventId, to: ids[5] as EventId, missed: 3 });
    });

    test("a held place inside the stream is no gap, whatever was trimmed before it", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 8);
      await under().trim(runId, 3);
      const page = await under().broker.readPage(runId, { id: ids[6] as EventId, exact: true }, 10);
      expect(page.gap).toBeNull();
      expect(page.entries.map((entry) => entry.id)).toEqual(ids.slice(7));
    });

    test("without a place, reading begins at the oldest kept entry, and that is no gap", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 8);
      await under().trim(runId, 3);
      const page = await under().broker.readPage(runId, null, 10);
      expect(page.gap).toBeNull();
      expect(page.entries.map((entry) => entry.id)).toEqual(ids.slice(5));
    });

    test("a since before trimmed entries is a retention gap", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 8);
      await under().trim(runId, 3);
      const page = await under().broker.readPage(runId, { id: "5-0", exact: false }, 10);
      if (under().knowsTrims === false) expect(page.gap).toBeNull();
      else expectGap(page.gap, { reason: "retention", from: "5-0", to: ids[5] as EventId, missed: 5 });
    });

    test("a stream trimmed to nothing is a retention gap without an end, and the next entry comes without another", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 4);
      await under().trim(runId, 0);
      const page = await under().broker.readPage(runId, { id: ids[1] as EventId, exact: true }, 10);
      expectGap(page.gap, { reason: "retention", from: ids[1] as EventId, to: null, missed: 2 });
      expect(page.entries).toEqual([]);
      const [fresh] = await publish(under().broker, runId, 1, 4);
      const next = await under().broker.readPage(runId, page.next, 10);
      expect(next.gap).toBeNull();
      expect(next.entries.map((entry) => entry.id)).toEqual([fresh]);
    });

    test("a held place in a stream that is gone is a retention gap", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 4);
      await under().delete(runId);
      const page = await under().broker.readPage(runId, { id: ids[1] as EventId, exact: true }, 10);
      expect(page).toMatchObject({
        gap: { reason: "retention", from: ids[1], to: null },
        entries: [],
        next: null,
        atHead: true,
      });
    });

    test("a held place in a stream that is gone and was begun anew is a retention gap up to its first entry", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 4);
      await under().delete(runId);
      await new Promise((resolve) => setTimeout(resolve, 2)); // Redis gives ids by its clock alone; a run begun anew must get later ones.
      const [fresh] = await publish(under().broker, runId, 1, 4);
      const page = await under().broker.readPage(runId, { id: ids[1] as EventId, exact: true }, 10);
      expect(page.gap).toMatchObject({ reason: "retention", from: ids[1], to: fresh });
      expect(page.entries.map((entry) => entry.id)).toEqual([fresh]);
    });

    test("who names no place where nothing is kept holds a place all the same, and is told when another stream takes over", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 4);
      await under().trim(runId, 0);
      const page = await under().broker.readPage(runId, null, 10);
      expect(page).toMatchObject({ gap: null, entries: [], atHead: true });
      await under().delete(runId);
      await new Promise((resolve) => setTimeout(resolve, 2)); // Redis gives ids by its clock alone; a run begun anew must get later ones.
      const [fresh] = await publish(under().broker, runId, 1, 4);
      const next = await under().broker.readPage(runId, page.next, 10);
      if (under().knowsTrims === false) expect(next.gap).toBeNull();
      else expect(next.gap).toMatchObject({ reason: "retention", from: ids[3], to: fresh });
      expect(next.entries.map((entry) => entry.id)).toEqual([fresh]);
    });

    test("a held place newer than the stream is a rollback gap, and reading goes on at its head", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 3);
      const position = { id: "99999999999999-7", exact: true };
      const page = await under().broker.readPage(runId, position, 10);
      expect(page.gap).toEqual({ reason: "rollback", from: position.id, to: null, missed: null });
      expect(page).toMatchObject({ entries: [], next: { id: ids[2], exact: true }, atHead: true });
    });

    test("a held place that was never in the stream, though it could be, is a rollback gap", async () => {
      const runId = randomUUID();
      const [first] = await publish(under().broker, runId, 1);
      await new Promise((resolve) => setTimeout(resolve, 2)); // So that there is room between the two ids.
      const [second] = await publish(under().broker, runId, 1, 1);
      const position = { id: `${millisecondsOf(first as EventId)}-9`, exact: true };
      const page = await under().broker.readPage(runId, position, 10);
      expect(page.gap).toEqual({ reason: "rollback", from: position.id, to: second, missed: null });
      expect(page.entries.map((entry) => entry.id)).toEqual([second]);
    });

    test("the place before everything is never lost", async () => {
      const runId = randomUUID();
      const ids = await publish(under().broker, runId, 2);
      const page = await under().broker.readPage(runId, { id: ZERO_ID, exact: true }, 10);
      expect(page.gap).toBeNull();
      expect(page.entries.map((entry) => entry.id)).toEqual(ids);
    });
  });

  function expectGap(gap: Gap | null, expected: Gap): void {
    expect(gap).toEqual({ ...expected, missed: under().countsMissed ? expected.missed : (gap?.missed ?? null) });
    if (gap?.missed !== null) expect(gap?.missed).toBe(expected.missed);
  }
}
