/** S11: a finished run always ends the stream again, wherever the reader stood. */
import { EventSource } from "eventsource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, type Stage, seedRedis, sendCase, startStage } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { waitFor } from "../support/wait-for.ts";

/** The case's own limit: `end` and the end of the body within 2 s. */
const END_LIMIT_MS = 2_000;
const FILES = ["before-end", "at-end", "after-end", "no-position"];

describe("S11: reconnect at, after or long after the end", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("redis");
    await seedRedis(stage.redis!, "S11/seed.redis", CASE_RUN);
  });
  afterAll(() => stage.stop());

  it.each(FILES)("%s gets an end and the end of the body", async (name) => {
    const events = await eventsUntilEnd(stage.gateway, `S11/${name}.http`);
    expect(events.at(-1)).toMatchObject({ event: "end", data: "{}" });
    expect(events.filter(({ event }) => event === "end")).toHaveLength(1);
    if (name === "no-position") expect(events.map(({ event }) => event)).toEqual(["token", "end"]);
    if (name === "before-end" || name === "at-end") expect(events).toHaveLength(1);
  });

  it("leaves an EventSource alone: it comes back once in an hour, not each second", async () => {
    const openedBefore = (await stage.gateway.metrics()).get("penstock_connections_opened_total") ?? 0;
    const source = new EventSource(stage.gateway.runUrl(CASE_RUN, "/events/stream"));
    let ends = 0;
    source.addEventListener("end", () => ends++);
    await waitFor("the end and the closed body", () => ends === 1 && source.readyState === EventSource.CONNECTING);
    // Longer than the longest `retry` that a stream of a run in progress gets, 2 s, and than EventSource's own, 3 s.
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect((await stage.gateway.metrics()).get("penstock_connections_opened_total")).toBe(openedBefore + 1);
    expect(ends).toBe(1);
    source.close();
  });

  describe("with everything expired, at a gateway that never saw the run", () => {
    let fresh: Gateway;

    beforeAll(async () => {
      await seedRedis(stage.redis!, "S11/expired.redis", CASE_RUN);
      fresh = await startGateway({ broker: "redis", redisUrl: stage.redis!.url });
    });
    afterAll(() => fresh.stop());

    it("no position: end", async () => {
      const events = await eventsUntilEnd(fresh, "S11/no-position.http");
      expect(events.map(({ event }) => event)).toEqual(["end"]);
    });

    it.each(["before-end", "at-end", "after-end"])("%s: gap, end", async (name) => {
      const events = await eventsUntilEnd(fresh, `S11/${name}.http`);
      expect(events.map(({ event }) => event).filter((event) => event !== "cursor")).toEqual(["gap", "end"]);
      const { reason } = JSON.parse(events[0]?.data ?? "{}") as { reason?: string };
      expect(name === "after-end" ? ["retention", "rollback"] : ["retention"]).toContain(reason);
    });

    it("a filter does not hold back the end", async () => {
      const reader = await fresh.stream(CASE_RUN, "?kinds=token&step_names=train");
      await reader.waitForEnd(END_LIMIT_MS);
      expect(reader.events.map(({ event }) => event)).toEqual(["end"]);
      expect(reader.retries.at(-1)).toBe(3_600_000);
    });
  });
});

describe("S11: a finished run, memory broker", () => {
  let gateway: Gateway;
  let lastEventId: string;
  let endId: string;

  beforeAll(async () => {
    gateway = await startGateway();
    const published = await gateway.publish(CASE_RUN, { events: [{ kind: "token", payload: {} }] });
    lastEventId = published.body.last_id ?? "";
    const ended = await fetch(gateway.runUrl(CASE_RUN, "/end"), { method: "POST" });
    endId = ((await ended.json()) as { last_id: string }).last_id;
  });
  afterAll(() => gateway.stop());

  it.each([
    ["before the end", () => lastEventId],
    ["at the end", () => endId],
    ["after the end", () => endId.replace(/\d+$/, "99")],
  ])("a position %s gets an end and the end of the body", async (_where, position) => {
    const reader = await gateway.stream(CASE_RUN, "", { lastEventId: position() });
    await reader.waitForEnd(END_LIMIT_MS);
    expect(reader.published).toEqual([]);
    expect(reader.of("end")).toHaveLength(1);
    expect(reader.events.at(-1)?.event).toBe("end");
  });

  it("no position gets the history, then the end", async () => {
    const reader = await gateway.stream(CASE_RUN);
    await reader.waitForEnd(END_LIMIT_MS);
    expect(reader.events.map(({ event }) => event)).toEqual(["token", "end"]);
  });
});

async function eventsUntilEnd(gateway: Gateway, path: string) {
  const connection = await sendCase(gateway, path);
  expect((await connection.response({ limitMs: END_LIMIT_MS })).complete).toBe(true);
  const { events } = connection;
  connection.close();
  return events;
}
