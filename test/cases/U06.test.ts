/** U06: methods and paths nobody wrote a route for are answered, and the connection stays good. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stage, sendCase, startStage } from "../support/cases.ts";
import { fillTemplate, headerOf, parseResponses, type RawConnection, type RawResponse } from "../support/raw-http.ts";

/** The case's own limit: an answer or a close within 2 s, never a socket held for ever. */
const ANSWER_LIMIT_MS = 2_000;
const NEXT_REQUEST = "GET /api/v1/info HTTP/1.1\r\nHost: gateway.test\r\n\r\n";

describe("U06: methods and paths without a route", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("memory");
  });
  afterAll(() => stage.stop());

  it.each(["unknown-path", "double-slash", "trailing-slash"])("%s: 404 with a body that says so", async (name) => {
    const connection = await sendCase(stage.gateway, `U06/${name}.http`);
    const answer = await connection.response({ limitMs: ANSWER_LIMIT_MS });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body.toString())).toEqual({ detail: expect.any(String) });
    await expectUsable(connection);
  });

  it.each(["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"])("%s: 405 with Allow", async (method) => {
    const connection = await sendCase(stage.gateway, `U06/${method}-stream.http`);
    const answer = await connection.response({ limitMs: ANSWER_LIMIT_MS });
    expect(answer.status).toBe(405);
    expect(headerOf(answer, "allow")).toMatch(/\bGET\b/);
    expect(JSON.parse(answer.body.toString())).toEqual({ detail: expect.any(String) });
    await expectUsable(connection);
  });

  it("HEAD: a head without a body, no subscriber, and the next answer is whole", async () => {
    const connection = await sendCase(stage.gateway, "U06/HEAD-stream.http");
    const answer = await connection.response({ limitMs: ANSWER_LIMIT_MS, head: true });
    expect(answer.status).toBe(200);
    expect(headerOf(answer, "content-type")).toMatch(/^text\/event-stream/);
    await connection.send(NEXT_REQUEST);
    await connection.untilText("auth_scheme", ANSWER_LIMIT_MS);
    // Not one byte between the two heads.
    expect(connection.text.indexOf("HTTP/1.1", 1)).toBe(connection.text.indexOf("\r\n\r\n") + 4);
    connection.close();
    expect((await stage.gateway.metrics()).get("penstock_connections")).toBe(0);
    expect((await stage.gateway.metrics()).get("penstock_connections_opened_total")).toBe(0);
  });

  it("OPTIONS: 204 or 200 with Allow, a 204 without Content-Length", async () => {
    const connection = await sendCase(stage.gateway, "U06/OPTIONS-stream.http");
    const answer = await connection.response({ limitMs: ANSWER_LIMIT_MS });
    expect([200, 204]).toContain(answer.status);
    expect(headerOf(answer, "allow")).toMatch(/\bGET\b/);
    if (answer.status === 204) expect(headerOf(answer, "content-length")).toBeNull();
    await expectUsable(connection);
  });

  it.each(["http10", "no-host", "options-star", "absolute-form", "get-stream"])(
    "%s: an answer or a close in time",
    async (name) => {
      const connection = await sendCase(stage.gateway, `U06/${name}.http`);
      await connection.until(
        () => connection.closed || connection.text.includes("\r\n\r\n"),
        ANSWER_LIMIT_MS,
        "an answer or a close",
      );
      connection.close();
    },
  );

  it("get-with-body: works or is refused, and its five bytes are no next request", async () => {
    const connection = await sendCase(stage.gateway, "U06/get-with-body.http");
    const answer = await connection.head(ANSWER_LIMIT_MS);
    expect([200, 400]).toContain(answer.status);
    if (answer.status === 400) await connection.untilClosed(ANSWER_LIMIT_MS);
    expect(parseResponses(connection.bytes, { closed: connection.closed, head: false })).toHaveLength(1);
    connection.close();
  });

  it("never answers 405 or 501 where one may publish", async () => {
    const publish =
      "POST {{PUBLISH_PATH}} HTTP/1.1\r\nHost: gateway.test\r\nContent-Type: application/json\r\nContent-Length: {{CL}}\r\n\r\n";
    for (const slash of ["", "/"]) {
      const text = `${publish.replace("{{PUBLISH_PATH}}", `{{PUBLISH_PATH}}${slash}`)}{"events": []}`;
      const connection = await sendCase(stage.gateway, "U06/unknown-path.http");
      await connection.response();
      await connection.send(fillTemplate(Buffer.from(text)));
      const [, answer] = await connection.responses(2);
      expect(answer?.status).toBe(200);
      expect(JSON.parse(answer?.body.toString() ?? "")).toEqual({ count: 0, last_id: null });
      connection.close();
    }
  });
});

/** Sends another request on the same connection and closes it when that is answered by itself. */
async function expectUsable(connection: RawConnection): Promise<void> {
  await connection.send(NEXT_REQUEST);
  const answers: RawResponse[] = await connection.responses(2);
  expect(answers.map(({ status }) => status)[1]).toBe(200);
  connection.close();
}
