/** S08: which resume position counts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, type Stage, seedRedis, sendCase, startStage, statusOf } from "../support/cases.ts";

describe("S08: empty, double and competing positions", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("redis");
    await seedRedis(stage.redis!, "S08/seed.redis", CASE_RUN);
  });
  afterAll(() => stage.stop());

  it.each([
    ["empty-header", "1700000000000-0"],
    ["since-empty", "1700000000000-0"],
    ["empty-header-with-since", "1700000000002-0"],
    ["header-and-since", "1700000000002-0"],
    ["header-case", "1700000000002-0"],
    ["header-spaces", "1700000000002-0"],
  ])("%s begins with %s", async (name, firstId) => {
    const connection = await sendCase(stage.gateway, `S08/${name}.http`);
    expect((await connection.head()).status).toBe(200);
    const [first] = await connection.untilEvents(1);
    expect(first).toMatchObject({ event: "token", id: firstId });
    connection.close();
  });

  it.each(["header-twice", "since-twice"])("%s is refused", async (name) => {
    expect(await statusOf(stage.gateway, `S08/${name}.http`)).toBe(400);
  });
});
