/** A06: Accept, by RFC 9110 12.5.1. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stage, sendCase, startStage } from "../support/cases.ts";
import { headerOf } from "../support/raw-http.ts";

describe("A06: Accept", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("memory");
  });
  afterAll(() => stage.stop());

  it.each(["star", "text-star", "list", "list-q", "upper", "param", "missing", "two-lines", "empty"])(
    "%s gets the stream",
    async (name) => {
      const connection = await sendCase(stage.gateway, `A06/${name}.http`);
      const head = await connection.head();
      connection.close();
      expect(head.status).toBe(200);
      expect(headerOf(head, "content-type")).toMatch(/^text\/event-stream(;|$)/);
    },
  );

  it.each(["json-only", "q-zero", "q-zero-star"])("%s is told 406, with a body", async (name) => {
    const connection = await sendCase(stage.gateway, `A06/${name}.http`);
    const answer = await connection.response();
    connection.close();
    expect(answer.status).toBe(406);
    expect(JSON.parse(answer.body.toString())).toEqual({ detail: expect.stringContaining("text/event-stream") });
  });

  it("junk is a client's fault", async () => {
    const connection = await sendCase(stage.gateway, "A06/junk.http");
    const { status } = await connection.response();
    connection.close();
    expect([400, 406]).toContain(status);
  });
});
