/** Law 4 and 9 of uWebSockets.js over longer than its own limits, which are 10 and 30 seconds. */
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../support/http-server.ts";
import { waitFor } from "../support/wait-for.ts";

let gateway: TestServer;

beforeAll(async () => {
  gateway = await startTestServer();
});
afterAll(() => gateway.close());

test("a reader that takes nothing for 45 seconds, and then all, keeps its connection", { timeout: 120_000 }, async () => {
  const socket = connect({ port: gateway.port, host: "127.0.0.1" }).pause();
  let received = 0;
  let closed = false;
  socket.on("data", (chunk) => {
    received += chunk.length;
  });
  socket.on("close", () => {
    closed = true;
  });
  socket.write("GET /api/v1/runs/r/events/stream HTTP/1.1\r\nHost: gateway.test\r\n\r\n");
  const stream = await gateway.streams.stream(0);
  let written = 0;
  const frame = Buffer.from(`data: ${"x".repeat(15_000)}\n\n`);
  do written += frame.length;
  while (stream.sink.write(frame));
  await delay(45_000);
  expect(closed).toBe(false);
  socket.resume();
  await waitFor("all that was written", () => received > written);
  expect(stream.drained).toBe(1);
  await delay(45_000);
  expect(closed).toBe(false);
  expect(stream.sink.write(Buffer.from(": later\n\n"))).toBe(true);
  const before = received;
  await waitFor("what was written later", () => received > before);
  socket.destroy();
});
