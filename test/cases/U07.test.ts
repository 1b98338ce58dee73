/** U07: how the filters are read from the query. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, caseBytes, type Stage, sendCase, startStage } from "../support/cases.ts";

/** t0: token, "load data", c1. t1: log, "a+b", c1. t2: metric, "a&b", c1. t3: token, no step, no correlation. */
const ALL = ["t0", "t1", "t2", "t3"];

describe("U07: filters in the query", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("memory", { env: { PENSTOCK_STREAMING_HEARTBEAT_SECONDS: "0.2" } });
    expect((await stage.gateway.publish(CASE_RUN, caseBytes("U07/batch.json"))).status).toBe(200);
  });
  afterAll(() => stage.stop());

  it.each([
    ["repeat", ["t0", "t1", "t3"]],
    // No comma splitting: a kind of that name, which no event has.
    ["comma", []],
    ["empty", ALL],
    ["blank", ALL],
    ["only-comma", ALL],
    ["key-only", ALL],
    ["other-empty-first", ["t1"]],
    ["encoded-key", ["t1"]],
    ["trailing-amp", ["t1"]],
    ["plus", ["t0"]],
    ["percent20", ["t0"]],
    ["literal-plus", ["t1"]],
    ["encoded-amp", ["t2"]],
    ["proto", ["t0", "t3"]],
    // Unknown parameters are ignored, and names have a case.
    ["case", ALL],
    ["unknown", ALL],
    ["brackets", ALL],
  ])("%s", async (name, texts) => {
    const connection = await sendCase(stage.gateway, `U07/${name}.http`);
    expect((await connection.head()).status).toBe(200);
    // The heartbeat comes behind all that the filter let through.
    await connection.untilText(": ping");
    expect(connection.events.filter(({ event }) => event !== "cursor").map(({ data }) => textOf(data))).toEqual(texts);
    connection.close();
  });

  it.each(["bad-percent", "bad-utf8"])("%s is taken literally or refused, never a 500", async (name) => {
    const connection = await sendCase(stage.gateway, `U07/${name}.http`);
    const { status } = await connection.head();
    expect([200, 400]).toContain(status);
    if (status === 200) {
      await connection.untilText(": ping");
      expect(connection.events.filter(({ event }) => event !== "cursor")).toEqual([]);
    }
    connection.close();
  });

  it("many (300 values) works, or is refused for its length", async () => {
    const connection = await sendCase(stage.gateway, "U07/many.http");
    const { status } = await connection.head();
    expect([200, 400, 414, 431]).toContain(status);
    if (status === 200) {
      await connection.untilText(": ping");
      expect(connection.events.filter(({ event }) => event !== "cursor").map(({ data }) => textOf(data))).toEqual([
        "t0",
        "t1",
        "t2",
      ]);
    }
    connection.close();
  });

  it("two filters together mean AND, and an event without a step matches no step filter", async () => {
    for (const [query, texts] of [
      ["?kinds=token&step_names=load+data", ["t0"]],
      ["?kinds=log&step_names=load+data", []],
      ["?kinds=token&step_names=a%2Bb&step_names=load%20data", ["t0"]],
      ["?correlation_ids=c1&kinds=token", ["t0"]],
    ] as const) {
      const reader = await stage.gateway.stream(CASE_RUN, query);
      await reader.waitFor("a heartbeat", () => reader.comments.includes("ping"));
      expect(reader.published.map(({ data }) => textOf(data))).toEqual(texts);
      reader.close();
    }
  });

  it("a filtered stream is not silent: a cursor tells how far it is", async () => {
    const reader = await stage.gateway.stream(CASE_RUN, "?kinds=nothing");
    await reader.waitFor("a heartbeat", () => reader.comments.includes("ping"));
    expect(reader.of("cursor")).toHaveLength(1);
    reader.close();
    const all = await stage.gateway.stream(CASE_RUN);
    await all.waitForPublished(4);
    expect(reader.lastEventId).toBe(all.lastEventId);
    all.close();
  });
});

function textOf(data: string): string {
  return (JSON.parse(data) as { payload: { text: string } }).payload.text;
}
