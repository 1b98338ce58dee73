/** R07: ids of one millisecond, and sequence numbers beyond 2^53. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, caseBytes, entryOf, type Stage, seedRedis, sendCase, startStage, streamKey } from "../support/cases.ts";

const BIG_RUN = "11111111-2222-4333-8444-bbbbbbbbbbbb";

describe("R07: order of ids", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("redis");
    await seedRedis(stage.redis!, "R07/seed.redis", CASE_RUN);
    const big = caseBytes("R07/big-seq.redis").toString().replaceAll("{{KEY}}:b", streamKey(BIG_RUN)).trim();
    for (const line of big.split("\n")) {
      const words = line
        .split(" ")
        .map((word) => word.replace(/\{\{ENTRY(\d+)\}\}/, (_, n: string) => entryOf(BIG_RUN, Number(n))));
      await stage.redis!.cli(...words);
    }
  });
  afterAll(() => stage.stop());

  const all = [...Array.from({ length: 12 }, (_, sequence) => `1700000000000-${sequence}`), "1700000000001-0"];

  it.each([0, 8, 9, 10, 11])("from-%i: all that follow, in order", async (sequence) => {
    const connection = await sendCase(stage.gateway, `R07/from-${sequence}.http`);
    const expected = all.slice(sequence + 1);
    const events = await connection.untilEvents(expected.length);
    connection.close();
    expect(events.map(({ id }) => id)).toEqual(expected);
  });

  it("without a position: all thirteen, in order", async () => {
    const reader = await stage.gateway.stream(CASE_RUN);
    await reader.waitForPublished(13);
    expect(reader.ids).toEqual(all);
    reader.close();
  });

  it.each(["?since=", "header"])("big-seq by %s: after …993 comes …994", async (way) => {
    const position = "1700000000000-9007199254740993";
    const reader = await (way === "header"
      ? stage.gateway.stream(BIG_RUN, "", { lastEventId: position })
      : stage.gateway.stream(BIG_RUN, `${way}${position}`));
    await reader.waitForPublished(1);
    expect(reader.events.map(({ event, id }) => [event, id])).toEqual([["token", "1700000000000-9007199254740994"]]);
    reader.close();
  });

  it("goes on live behind such ids", async () => {
    const reader = await stage.gateway.stream(BIG_RUN, "", { lastEventId: "1700000000000-9007199254740994" });
    await stage.redis!.cli("XADD", streamKey(BIG_RUN), "1700000000000-18446744073709551615", "p", entryOf(BIG_RUN, 2));
    await reader.waitForPublished(1);
    expect(reader.ids).toEqual(["1700000000000-18446744073709551615"]);
    expect(reader.gaps).toEqual([]);
    reader.close();
  });
});
