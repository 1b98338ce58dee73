/** Methods, paths and the order of refusals, on a real server. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseUuid } from "../../protocol/run-id.ts";
import { ask, jsonOf } from "../../test/support/http-client.ts";
import { oneToken, startTestServer, type TestServer } from "../../test/support/http-server.ts";
import { headerOf, sendRaw } from "../../test/support/raw-http.ts";

const TOKEN = { Authorization: "Bearer test-token" };
const JSON_TYPE = { "Content-Type": "application/json" };
const UUID = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
const STREAM = "/api/v1/runs/r/events/stream";
const EVENTS = "/api/v1/runs/r/events";

let gateway: TestServer;

beforeAll(async () => {
  gateway = await startTestServer({ settings: { pathPrefix: "" }, deploymentId: UUID });
});
afterAll(() => gateway.close());

describe("methods and paths", () => {
  test.each(["/nope", `/${STREAM}`, `${STREAM}/`, "/api/v1/runs/r", "/api/v1/login"])(
    "nothing is at %s: 404 with a body",
    async (path) => {
      const answer = await ask(gateway.port, { path });
      expect(answer.status).toBe(404);
      expect(jsonOf(answer)).toEqual({ detail: expect.any(String) });
    },
  );

  test.each(["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get", "POST"])(
    "%s on a stream: 405 with Allow, and the connection can be used again",
    async (method) => {
      const request = `${method} ${STREAM} HTTP/1.1\r\nHost: a\r\n\r\n`;
      const connection = await sendRaw(gateway.port, request);
      const first = await connection.response();
      expect(first.status).toBe(405);
      expect(headerOf(first, "allow")).toBe("GET, HEAD, OPTIONS");
      await connection.send(request);
      expect(await connection.responses(2)).toHaveLength(2);
      connection.close();
    },
  );

  test("a publish path never answers 405 or 501 to POST, with a slash or without: either mutes ZenML's producer for good", async () => {
    for (const path of [EVENTS, `${EVENTS}/`]) {
      const answer = await ask(gateway.port, { method: "POST", path, headers: JSON_TYPE, body: '{"events":[]}' });
      expect(answer.status).toBe(200);
    }
  });

  test("HEAD on a stream is its head alone, without a subscriber, and the connection can be used again", async () => {
    const request = `HEAD ${STREAM} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const connection = await sendRaw(gateway.port, request);
    const first = await connection.response({ head: true });
    expect(first.status).toBe(200);
    expect(headerOf(first, "content-type")).toBe("text/event-stream; charset=utf-8");
    await connection.send(request);
    expect(await connection.responses(2, { head: true })).toHaveLength(2);
    expect(connection.text.endsWith("\r\n\r\n")).toBe(true);
    expect(gateway.streams.taken).toBe(0);
    connection.close();
  });

  test.each(["/api/v1/info", "/openapi.json", EVENTS, "/nope"])(
    "HEAD on %s says how long the body of GET is, and sends none",
    async (path) => {
      const connection = await sendRaw(gateway.port, `HEAD ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const head = await connection.response({ head: true });
      const get = await ask(gateway.port, { path });
      expect(headerOf(head, "content-length")).toBe(String(get.body.length));
      expect(connection.text.endsWith("\r\n\r\n")).toBe(true);
      connection.close();
    },
  );

  test.each([
    [STREAM, "GET, HEAD, OPTIONS"],
    [EVENTS, "GET, HEAD, POST, OPTIONS"],
    ["/api/v1/runs/r/end", "POST, OPTIONS"],
  ])("OPTIONS on %s: 204 with Allow and without a length", async (path, allow) => {
    const answer = await ask(gateway.port, { method: "OPTIONS", path });
    expect(answer.status).toBe(204);
    expect(headerOf(answer, "allow")).toBe(allow);
    expect(headerOf(answer, "content-length")).toBeNull();
  });
});

describe("with a prefix", () => {
  test("everything stands behind it, and nothing beside it", async () => {
    const behind = await startTestServer({ settings: { pathPrefix: "/zenml" } });
    expect((await ask(behind.port, { path: "/zenml/api/v1/info" })).status).toBe(200);
    expect((await ask(behind.port, { path: "/api/v1/info" })).status).toBe(404);
    const body = jsonOf(await ask(behind.port, { path: "/zenml/openapi.json" }));
    expect(body["servers"]).toEqual([{ url: "/zenml" }]);
    await behind.close();
  });
});

describe("info", () => {
  test("is what ZenML's client needs, and says what this is", async () => {
    const answer = await ask(gateway.port, { path: "/api/v1/info" });
    expect(jsonOf(answer)).toEqual({
      id: UUID,
      version: "0.98.0",
      auth_scheme: "NO_AUTH",
      deployment_id: UUID,
      penstock_version: "0.0.0-test",
    });
  });

  test("has no id that ZenML's client could not read", async () => {
    for (const deploymentId of [null, "live"]) {
      const other = await startTestServer({ deploymentId });
      const info = jsonOf(await ask(other.port, { path: "/api/v1/info" }));
      expect(info).not.toHaveProperty("id");
      expect(info["deployment_id"]).toBe(deploymentId);
      await other.close();
    }
    expect(parseUuid("live")).toBeNull();
  });
});

describe.each([false, true])("the order of refusals (authenticator waits: %s)", (delayed) => {
  let guarded: TestServer;
  let off: TestServer;

  beforeAll(async () => {
    [guarded, off] = await Promise.all([
      startTestServer({ authenticator: oneToken(delayed), settings: { runIds: "uuid" } }),
      startTestServer({ authenticator: oneToken(delayed), settings: { runIds: "uuid" }, broker: null }),
    ]);
  });
  afterAll(() => Promise.all([guarded.close(), off.close()]));

  const bad = { "Content-Type": "text/plain", "Idempotency-Key": "k".repeat(300) };

  test("404 and 405 come before 401", async () => {
    expect((await ask(guarded.port, { path: "/nope" })).status).toBe(404);
    expect((await ask(guarded.port, { method: "PUT", path: EVENTS })).status).toBe(405);
  });

  test.each(["", "Bearer", "Bearer wrong", "Basic dGVzdA=="])(
    "401 with WWW-Authenticate comes before 501 (%j)",
    async (authorization) => {
      const headers = authorization === "" ? {} : { Authorization: authorization };
      for (const path of [STREAM, EVENTS])
        for (const method of path === EVENTS ? ["POST", "GET"] : ["GET"]) {
          const answer = await ask(off.port, { method, path, headers: { ...headers, ...bad } });
          expect(answer.status).toBe(401);
          expect(headerOf(answer, "www-authenticate")).toBe("Bearer");
          expect(jsonOf(answer)).toEqual({ detail: expect.any(String) });
        }
    },
  );

  test("501 comes before 422 for the run id", async () => {
    expect((await ask(off.port, { path: STREAM, headers: TOKEN })).status).toBe(501);
    expect((await ask(off.port, { method: "POST", path: EVENTS, headers: { ...TOKEN, ...bad }, body: "x" })).status).toBe(501);
  });

  test("422 for the run id comes before the content type, the query and Accept", async () => {
    const stream = await ask(guarded.port, { path: `${STREAM}?since=x`, headers: { ...TOKEN, Accept: "text/html" } });
    expect(stream.status).toBe(422);
    expect((await ask(guarded.port, { method: "POST", path: EVENTS, headers: { ...TOKEN, ...bad }, body: "x" })).status).toBe(
      422,
    );
  });

  test("then the content type, then the key, then the body", async () => {
    const path = `/api/v1/runs/${UUID}/events`;
    const post = (headers: Record<string, string>, body: string) =>
      ask(guarded.port, { method: "POST", path, headers: { ...TOKEN, ...headers }, body });
    expect((await post(bad, "x")).status).toBe(415);
    expect((await post({ ...bad, ...JSON_TYPE }, "x")).status).toBe(400);
    expect((await post(JSON_TYPE, "x")).status).toBe(400);
    expect((await post(JSON_TYPE, "{}")).status).toBe(422);
    expect((await post(JSON_TYPE, '{"events":[{"kind":"end"}]}')).status).toBe(400);
    expect((await post(JSON_TYPE, '{"events":[{"kind":"token"}]}')).status).toBe(200);
  });

  test("a stream's Accept comes before its query", async () => {
    const path = `/api/v1/runs/${UUID}/events/stream?since=x`;
    expect((await ask(guarded.port, { path, headers: { ...TOKEN, Accept: "text/html" } })).status).toBe(406);
    expect((await ask(guarded.port, { path, headers: TOKEN })).status).toBe(400);
  });

  test("refused streams are counted by reason", async () => {
    const { metrics } = guarded;
    expect(metrics.value("penstock_connections_rejected_total", "not_acceptable")).toBeGreaterThan(0);
    expect(metrics.value("penstock_connections_rejected_total", "bad_request")).toBeGreaterThan(0);
    expect(off.metrics.value("penstock_connections_rejected_total", "unauthorized")).toBeGreaterThan(0);
    expect(metrics.value("penstock_publishes_total", "refused")).toBeGreaterThan(0);
    expect(metrics.value("penstock_publishes_total", "ok")).toBe(1);
  });
});

describe("rights", () => {
  test("403 comes before the body, and reading is another right than publishing", async () => {
    const guarded = await startTestServer({ authenticator: oneToken(true) });
    const path = "/api/v1/runs/no-publish/events";
    // The body is announced and never sent.
    const connection = await sendRaw(
      guarded.port,
      `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer test-token\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n`,
    );
    expect((await connection.response()).status).toBe(403);
    connection.close();
    expect((await ask(guarded.port, { method: "POST", path: "/api/v1/runs/no-publish/end", headers: TOKEN })).status).toBe(403);
    expect((await ask(guarded.port, { path, headers: TOKEN })).status).toBe(200);
    await guarded.close();
  });

  test("a large body waits while the caller is looked up, and is whole afterwards", async () => {
    const guarded = await startTestServer({ authenticator: oneToken(true) });
    const events = Array.from({ length: 100 }, () => ({ kind: "token", payload: { text: "x".repeat(60_000) } }));
    const headers = { ...TOKEN, ...JSON_TYPE };
    const answer = await ask(guarded.port, { method: "POST", path: EVENTS, headers, body: JSON.stringify({ events }) });
    expect(jsonOf(answer)["count"]).toBe(100);
    await guarded.close();
  });
});
