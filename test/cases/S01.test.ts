/** S01: line breaks and NUL in producer fields must not break the frames of the stream. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, type Stage, startStage, statusOf } from "../support/cases.ts";
import type { SseReader } from "../support/sse-reader.ts";

interface EventBody {
  readonly kind: string;
  readonly step_name: string;
  readonly correlation_id: string;
  readonly payload: { readonly text: string };
}

describe.each(["memory", "redis"] as const)("S01: line breaks in producer fields, %s broker", (broker) => {
  let stage: Stage;
  let reader: SseReader;

  beforeAll(async () => {
    stage = await startStage(broker);
    reader = await stage.gateway.stream(CASE_RUN);
  });
  afterAll(() => stage.stop());

  it.each(["kind-lf", "kind-cr", "kind-crlf", "kind-nul"])("refuses %s, stores nothing", async (name) => {
    const before = await stage.entryCount(CASE_RUN);
    expect(await statusOf(stage.gateway, `S01/${name}.http`)).toBe(400);
    expect(await stage.entryCount(CASE_RUN)).toBe(before);
  });

  it.each([
    ["kind-empty", "message", { kind: "" }],
    ["kind-65-chars", "k".repeat(65), { kind: "k".repeat(65) }],
    ["kind-space-colon", "tok: x", { kind: "tok: x" }],
    ["step-crlf", "token", { step_name: "a\r\ndata: forged\r\n\r\n" }],
    ["corr-cr", "token", { correlation_id: "c\rid: 1-1\r\r" }],
    ["payload-crlf", "token", { payload: { text: "line1\r\nevent: end\r\n\r\nid: 5-5\rdata: x" } }],
  ])("hands %s over as one event with the same text", async (name, eventName, part) => {
    const before = reader.events.length;
    expect(await statusOf(stage.gateway, `S01/${name}.http`)).toBe(200);
    expect((await stage.gateway.publish(CASE_RUN, { events: [{ kind: "plain", payload: { after: name } }] })).status).toBe(200);
    await reader.waitFor(`the plain event after ${name}`, () => reader.payloads.some((payload) => hasAfter(payload, name)));
    const [event, plain, ...more] = reader.events.slice(before);
    expect(more).toEqual([]);
    expect(event?.event).toBe(eventName);
    expect(JSON.parse(event?.data ?? "") as EventBody).toMatchObject(part);
    expect(plain?.event).toBe("plain");
  });

  it("has sent no CR, no end, no id but those of the entries, and the stream is still open", () => {
    expect(reader.text).not.toContain("\r");
    expect(reader.of("end")).toEqual([]);
    expect(reader.ids).toEqual(reader.events.map(({ id }) => id));
    expect(new Set(reader.ids).size).toBe(reader.ids.length);
    expect(reader.ids).not.toContain("1-1");
    expect(reader.ids).not.toContain("5-5");
    expect(reader.ended).toBe(false);
  });
});

function hasAfter(payload: unknown, name: string): boolean {
  return (payload as { after?: string }).after === name;
}
