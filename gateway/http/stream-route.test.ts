/** How a stream is opened, on a real server: what the table of streams is asked for, and what the client hears when it is refused. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, jsonOf } from "../../test/support/http-client.ts";
import { oneToken, startTestServer, type TestServer } from "../../test/support/http-server.ts";
import { headerOf, sendRaw } from "../../test/support/raw-http.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { RequestError } from "../errors.ts";
import { EVERYTHING } from "../stream/filter.ts";
import type { OpenRequest } from "../worker/streams.ts";

const UUID = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

let gateway: TestServer;

beforeAll(async () => {
  gateway = await startTestServer();
});
afterAll(() => gateway.close());

async function opened(path: string, headers = "", server = gateway): Promise<OpenRequest & { runId: string }> {
  const index = server.streams.opened.length;
  const connection = await sendRaw(server.port, Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`, "latin1"));
  const stream = await server.streams.stream(index);
  connection.close();
  await waitFor("the slot is given back", () => stream.closed === 1);
  return { ...stream.request, runId: stream.runId };
}

test("without anything it begins at the oldest, unfiltered, for ever", async () => {
  const request = await opened("/api/v1/runs/r/events/stream");
  expect(request).toMatchObject({ runId: "r", position: null, tail: null, expiresAt: null });
  expect(request.filter).toBe(EVERYTHING);
});

test("any spelling of a UUID is one run", async () => {
  for (const raw of [
    UUID,
    UUID.toUpperCase(),
    UUID.replaceAll("-", ""),
    `%7B${UUID}%7D`,
    `urn:uuid:${UUID}`,
    `urn%3Auuid%3A${UUID}`,
  ])
    expect((await opened(`/api/v1/runs/${raw}/events/stream`)).runId).toBe(UUID);
});

test.each(["a%20b", "%zz", "%ff", "a%2Fb", "x".repeat(129), "a:b"])("%s is no run: 422, without an echo", async (raw) => {
  const answer = await ask(gateway.port, { path: `/api/v1/runs/${raw}/events/stream` });
  expect(answer.status).toBe(422);
  expect(jsonOf(answer)["detail"]).not.toContain(raw);
});

test("position, tail and filters are passed on; a position makes the tail meaningless", async () => {
  const path = "/api/v1/runs/r/events/stream?tail=3&kinds=token&kinds=log&step_names=train";
  expect(await opened(path)).toMatchObject({ position: null, tail: 3, filter: { key: '[["log","token"],["train"],null]' } });
  expect(await opened(path, "LAST-event-ID:  7-1 \t\r\n")).toMatchObject({ position: { id: "7-1", exact: true }, tail: null });
  expect(await opened(`${path}&since=007-1`)).toMatchObject({ position: { id: "7-1", exact: false }, tail: null });
});

test("the caller's right goes along with its end", async () => {
  const guarded = await startTestServer({ authenticator: oneToken(true) });
  const request = await opened("/api/v1/runs/r/events/stream", "Authorization: Bearer test-token\r\n", guarded);
  expect(request.expiresAt).toBe(4_102_444_800_000);
  await guarded.close();
});

test("lines of a repeated Accept count together", async () => {
  await opened("/api/v1/runs/r/events/stream", "Accept: application/json\r\nX: y\r\nAccept: text/event-stream\r\n");
  const answer = await ask(gateway.port, {
    path: "/api/v1/runs/r/events/stream",
    headers: { Accept: ["text/html", "application/json"] },
  });
  expect(answer.status).toBe(406);
});

test("no place for it: 503 with Retry-After, and the connection stays", async () => {
  gateway.streams.refusal = new RequestError("PENSTOCK_TOO_MANY_SUBSCRIBERS", 503, "This run has no place left.");
  const answer = await ask(gateway.port, { path: "/api/v1/runs/r/events/stream" });
  gateway.streams.refusal = null;
  expect(answer.status).toBe(503);
  expect(headerOf(answer, "retry-after")).toBe("5");
  expect(headerOf(answer, "connection")).toBeNull();
});

test("a second request on an open stream closes the connection, and the slot is given back", async () => {
  const before = gateway.streams.taken;
  const index = gateway.streams.opened.length;
  const request = "GET /api/v1/runs/r/events/stream HTTP/1.1\r\nHost: a\r\n\r\n";
  const connection = await sendRaw(gateway.port, request);
  await gateway.streams.stream(index);
  await connection.send(request);
  await connection.untilClosed();
  await waitFor("the slot is given back", () => gateway.streams.taken === before);
  expect(gateway.streams.opened).toHaveLength(index + 1);
});

test("a hundred clients that leave at once give all their slots back", async () => {
  const connections = await Promise.all(
    Array.from({ length: 100 }, () => sendRaw(gateway.port, "GET /api/v1/runs/r/events/stream HTTP/1.1\r\nHost: a\r\n\r\n")),
  );
  for (const connection of connections) connection.socket.resetAndDestroy();
  await waitFor("all have gone", () => gateway.server.connections === 0);
  expect(gateway.streams.taken).toBe(0);
});

test("while the gateway drains, a stream on a kept connection is served, and its client is told to close behind it", async () => {
  const draining = await startTestServer();
  const connection = await sendRaw(draining.port, "GET /api/v1/info HTTP/1.1\r\nHost: a\r\n\r\n");
  await connection.response();
  draining.server.startDraining();
  await connection.send("GET /api/v1/runs/r/events/stream HTTP/1.1\r\nHost: a\r\n\r\n");
  const stream = await draining.streams.stream(0);
  stream.sink.end(null);
  const [, response] = await connection.responses(2);
  expect(response!.status).toBe(200);
  expect(headerOf(response!, "connection")).toBe("close");
  connection.close();
  await draining.close();
});
