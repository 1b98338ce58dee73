/** S02: a producer must not be able to speak as the server. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, type Stage, sendCase, startStage } from "../support/cases.ts";
import type { SseReader } from "../support/sse-reader.ts";

describe.each(["memory", "redis"] as const)("S02: the server's own event names, %s broker", (broker) => {
  let stage: Stage;
  let reader: SseReader;

  beforeAll(async () => {
    stage = await startStage(broker);
    reader = await stage.gateway.stream(CASE_RUN);
  });
  afterAll(() => stage.stop());

  it.each(["end", "gap", "error", "cursor", "system"])("refuses the kind %s and says why", async (kind) => {
    const connection = await sendCase(stage.gateway, `S02/kind-${kind}.http`);
    const { status, body } = await connection.response();
    connection.close();
    expect(status).toBe(400);
    expect(JSON.parse(body.toString())).toEqual({ detail: expect.stringContaining("events[0].kind") });
    expect(await stage.entryCount(CASE_RUN)).toBe(0);
  });

  it("refuses a whole batch for one such event, and names it", async () => {
    const connection = await sendCase(stage.gateway, "S02/mixed-batch.http");
    const { status, body } = await connection.response();
    connection.close();
    expect(status).toBe(400);
    expect(JSON.parse(body.toString())).toEqual({ detail: expect.stringContaining("events[1]") });
    expect(await stage.entryCount(CASE_RUN)).toBe(0);
  });

  it.each(["message", "open"])("takes the kind %s, as docs/clients.md says", async (kind) => {
    const connection = await sendCase(stage.gateway, `S02/kind-${kind}.http`);
    expect((await connection.response()).status).toBe(200);
    connection.close();
    await reader.waitForEvent(kind);
  });

  it("has shown its watcher the two legal events alone", () => {
    expect(reader.events.map(({ event }) => event)).toEqual(["message", "open"]);
    expect(reader.ended).toBe(false);
  });
});
