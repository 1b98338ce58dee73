/** Long answers to clients that read slowly, or not at all, on a real server and real sockets. */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../../test/support/wait-for.ts";
import { createApp } from "./engine.ts";
import { Listener } from "./listener.ts";
import { LongAnswer } from "./long-answer.ts";

const BODY = Buffer.alloc(64 * 1024 * 1024, "0123456789abcdef");

const app = createApp();
const listener = new Listener(app, { maxConnections: 10, sharePort: false, log: { info() {}, warn() {}, error() {} } });
let port: number;
/** Answers that need their body no more. */
let gone = 0;

beforeAll(async () => {
  app.any("/*", (res) => {
    res.onAborted(() => {});
    setImmediate(() => {
      res.cork(() => res.writeHeader("x-long", "yes"));
      new LongAnswer(res, BODY, app, 5, () => gone++).send();
    });
  });
  port = await listener.listen("127.0.0.1", 0);
});
afterAll(() => {
  listener.close();
  app.close();
});

async function unread(): Promise<Socket> {
  const client = connect({ port, host: "127.0.0.1" });
  client.on("error", () => {});
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await new Promise((resolve) => client.once("readable", resolve));
  return client;
}

test("an answer that is not read is not copied, and what it holds is given back when its client leaves", async () => {
  const before = process.memoryUsage().rss;
  const client = await unread();
  expect(process.memoryUsage().rss - before).toBeLessThan(BODY.length / 2);
  expect(gone).toBe(0);
  client.destroy();
  await waitFor("the answer is given up", () => gone === 1);
});

test("an answer that is read late arrives whole, and the connection serves the next request", async () => {
  gone = 0;
  const client = await unread();
  let received = 0;
  let tail = "";
  client.on("data", (piece: Buffer) => {
    received += piece.length;
    tail = (tail + piece.toString("latin1")).slice(-100);
  });
  await waitFor("the end of the body", () => tail.endsWith("cdef\r\n0\r\n\r\n"));
  expect(received).toBeGreaterThan(BODY.length);
  expect(received).toBeLessThan(BODY.length * 1.01);
  expect(gone).toBe(1);
  tail = "";
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitFor("another answer", () => tail.endsWith("cdef\r\n0\r\n\r\n"));
  client.destroy();
});
