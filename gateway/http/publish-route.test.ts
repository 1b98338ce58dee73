/** Publishing, ending and history, through a real server into a real broker. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, jsonOf, type SentRequest } from "../../test/support/http-client.ts";
import { startTestServer, type TestServer } from "../../test/support/http-server.ts";
import { headerOf, sendRaw } from "../../test/support/raw-http.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import type { Broker, PublishResult } from "../broker/broker.ts";
import { BrokerUnavailableError } from "../errors.ts";

let gateway: TestServer;

beforeAll(async () => {
  gateway = await startTestServer();
});
afterAll(() => gateway.close());

function batchOf(...texts: string[]): string {
  return JSON.stringify({ events: texts.map((text) => ({ kind: "token", payload: { text } })) });
}

function post(run: string, body: SentRequest["body"], headers: NonNullable<SentRequest["headers"]> = {}, server = gateway) {
  const path = `/api/v1/runs/${run}/events`;
  return ask(server.port, {
    method: "POST",
    path,
    headers: { "Content-Type": "application/json", ...headers },
    ...(body === undefined ? {} : { body }),
  });
}

async function textsOf(run: string): Promise<string[]> {
  const page = jsonOf(await ask(gateway.port, { path: `/api/v1/runs/${run}/events?limit=1000` }));
  return (page["events"] as { event: { payload: { text: string } } }[]).map(({ event }) => event.payload.text);
}

describe("a publish", () => {
  test("answers with the count and the last id, and is kept in order", async () => {
    const answer = await post("order", batchOf("a", "b", "c"));
    expect(answer.status).toBe(200);
    expect(headerOf(answer, "content-type")).toBe("application/json");
    expect(jsonOf(answer)).toEqual({ count: 3, last_id: expect.stringMatching(/^\d+-\d+$/) });
    expect(await textsOf("order")).toEqual(["a", "b", "c"]);
  });

  test("of nothing stores nothing", async () => {
    expect(jsonOf(await post("nothing", '{"events":[]}'))).toEqual({ count: 0, last_id: null });
  });

  test("may be repeated with its key: the first answer again, and nothing stored twice", async () => {
    const key = { "Idempotency-Key": "k".repeat(255) };
    const first = jsonOf(await post("again", batchOf("once"), key));
    expect(jsonOf(await post("again", batchOf("once"), key))).toEqual(first);
    expect((await post("again", batchOf("other"), key)).status).toBe(422);
    expect(await textsOf("again")).toEqual(["once"]);
  });

  test.each<[string, string | string[]]>([
    ["too long", "k".repeat(256)],
    ["empty", ""],
    ["given twice", ["a", "a"]],
  ])("with a key that is %s: 400", async (_, key) => {
    expect((await post("keys", batchOf("x"), { "Idempotency-Key": key })).status).toBe(400);
    expect(await textsOf("keys")).toEqual([]);
  });

  test.each([
    "application/json",
    "application/json; charset=utf-8",
    "Application/JSON;charset=iso-8859-1",
    "application/cloudevents+json",
  ])("of the type %s is read as UTF-8", async (type) => {
    const run = `type-${type.length}`;
    expect((await post(run, batchOf("你好🙂é"), { "Content-Type": type })).status).toBe(200);
    expect(await textsOf(run)).toEqual(["你好🙂é"]);
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])("of the type %j: 415", async (type) => {
    expect((await post("types", batchOf("x"), { "Content-Type": type })).status).toBe(415);
  });

  test("that is compressed: 415; identity is not", async () => {
    expect((await post("coded", "x", { "Content-Encoding": "gzip" })).status).toBe(415);
    expect((await post("coded", batchOf("x"), { "Content-Encoding": "identity" })).status).toBe(200);
  });

  test("without a body: 400", async () => {
    expect((await post("empty", undefined)).status).toBe(400);
  });

  test("whose characters the network cut in two is whole", async () => {
    const body = Buffer.from(batchOf("你好🙂é"));
    const connection = await sendRaw(gateway.port, [
      Buffer.from(
        `POST /api/v1/runs/cut/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
      ),
      ...[...body].flatMap((byte) => [Buffer.from([byte]), 1]),
    ]);
    expect((await connection.response()).status).toBe(200);
    connection.close();
    expect(await textsOf("cut")).toEqual(["你好🙂é"]);
  });

  test("up to 16 MiB is taken, in chunks as well, and one byte more is told so", async () => {
    const limit = 16 * 1024 * 1024;
    const padded = (bytes: number) => {
      const batch = batchOf("big");
      return Buffer.from(batch.replace("{", `{${" ".repeat(bytes - batch.length)}`));
    };
    expect((await post("big", padded(limit))).status).toBe(200);
    expect((await post("big", padded(limit + 1))).status).toBe(413);
    const head =
      "POST /api/v1/runs/big/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const [bytes, status] of [
      [limit, 200],
      [limit + 1, 413],
    ] as const) {
      const connection = await sendRaw(
        gateway.port,
        Buffer.concat([Buffer.from(`${head}${bytes.toString(16)}\r\n`), padded(bytes), Buffer.from("\r\n0\r\n\r\n")]),
      );
      expect((await connection.response()).status).toBe(status);
      connection.close();
    }
    expect(await textsOf("big")).toEqual(["big", "big"]);
  });

  test("beside others that hold all the memory for bodies: 503 for a second", async () => {
    const small = await startTestServer({ settings: { bodyBudgetBytes: 10_000 } });
    const head = "POST /api/v1/runs/r/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    const holder = await sendRaw(small.port, `${head}Content-Length: 9000\r\n\r\n${"x".repeat(8_000)}`);
    const fits = await post("r", batchOf("x"), {}, small);
    expect(fits.status).toBe(200);
    const refused = await post("r", batchOf("x".repeat(4_000)), {}, small);
    expect(refused.status).toBe(503);
    expect(headerOf(refused, "retry-after")).toBe("1");
    holder.close();
    const afterwards = async () => (await post("r", batchOf("x".repeat(4_000)), {}, small)).status;
    await expect.poll(afterwards, { timeout: 5_000 }).toBe(200);
    await small.close();
  });

  test("whose client has left while the broker stores it still counts, until that is over", async () => {
    let stored: (result: PublishResult) => void = () => {};
    const broker = Object.create(gateway.broker) as Broker;
    broker.publish = () => new Promise((resolve) => (stored = resolve));
    const slow = await startTestServer({ broker, settings: { bodyBudgetBytes: 10_000 } });
    const body = batchOf("x".repeat(8_000));
    const head = "POST /api/v1/runs/r/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    const client = await sendRaw(slow.port, `${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    const status = async () => (await post("r", " ".repeat(4_000), {}, slow)).status;
    await expect.poll(status).toBe(503);
    client.close();
    await waitFor("the client has left", () => slow.server.connections === 0);
    expect(await status()).toBe(503);
    stored({ count: 1, lastId: "1-1" });
    await expect.poll(status).toBe(400);
    await slow.close();
  });

  test("that the broker does not confirm: 503, with what is known to be stored, and nothing of the broker's own words", async () => {
    let error: Error = new BrokerUnavailableError("redis.internal:6379 is away");
    const broker = Object.create(gateway.broker) as Broker;
    broker.publish = () => Promise.reject(error);
    broker.end = () => Promise.reject(error);
    broker.readPage = () => Promise.reject(error);
    const away = await startTestServer({ broker });

    const nothing = await post("r", batchOf("x"), {}, away);
    expect(nothing.status).toBe(503);
    expect(headerOf(nothing, "retry-after")).toBe("5");
    expect(jsonOf(nothing)).toEqual({ detail: expect.not.stringContaining("internal") });
    for (const [method, path] of [
      ["POST", "/api/v1/runs/r/end"],
      ["GET", "/api/v1/runs/r/events"],
    ] as const) {
      const answer = await ask(away.port, { method, path });
      expect(answer.status).toBe(503);
      expect(jsonOf(answer)).toEqual({ detail: expect.not.stringContaining("internal") });
    }

    error = new BrokerUnavailableError("redis.internal:6379 is away", 2, "7-1");
    expect(jsonOf(await post("r", batchOf("x", "y", "z"), {}, away))).toEqual({
      detail: expect.any(String),
      count: 2,
      last_id: "7-1",
    });
    expect(away.metrics.value("penstock_publishes_total", "unavailable")).toBe(2);

    error = new Error("a fault of the broker's module");
    const fault = await post("r", batchOf("x"), {}, away);
    expect(fault.status).toBe(500);
    expect(jsonOf(fault)["detail"]).not.toContain("module");
    expect(JSON.stringify(away.log.entries)).toContain("a fault of the broker's module");
    await away.close();
  });
});

describe("the end", () => {
  test("takes no body, and saying it again gives the same id", async () => {
    await post("over", batchOf("x"));
    const first = await ask(gateway.port, { method: "POST", path: "/api/v1/runs/over/end" });
    expect(first.status).toBe(200);
    expect(jsonOf(first)).toEqual({ last_id: expect.stringMatching(/^\d+-\d+$/) });
    const second = await ask(gateway.port, { method: "POST", path: "/api/v1/runs/over/end", body: "{}" });
    expect(jsonOf(second)).toEqual(jsonOf(first));
  });

  test("can be said of a run without events", async () => {
    expect((await ask(gateway.port, { method: "POST", path: "/api/v1/runs/unheard/end" })).status).toBe(200);
  });
});

describe("history", () => {
  const page = async (query: string, headers = {}) =>
    jsonOf(await ask(gateway.port, { path: `/api/v1/runs/pages/events${query}`, headers }));

  beforeAll(async () => {
    await post("pages", batchOf(...Array.from({ length: 600 }, (_, n) => String(n))));
  });

  test("comes in pages that lead to one another, without gap or overlap", async () => {
    const seen: string[] = [];
    for (let next: string | null = ""; next !== null; ) {
      const body = await page(`?limit=77&since=${next}`);
      expect(body["gap"]).toBeNull();
      seen.push(...(body["events"] as { event: { payload: { text: string } } }[]).map(({ event }) => event.payload.text));
      next = body["next"] as string | null;
    }
    expect(seen).toEqual(Array.from({ length: 600 }, (_, n) => String(n)));
  });

  test("gives 256 when not asked for more, and up to 1000 when asked", async () => {
    expect((await page(""))["events"]).toHaveLength(256);
    expect((await page("?limit=1000"))["events"]).toHaveLength(600);
  });

  test("is the event as it is streamed, beside its id", async () => {
    const [first] = (await page("?limit=1"))["events"] as [{ id: string; event: object }];
    expect(first.id).toMatch(/^\d+-\d+$/);
    expect(Object.keys(first.event)).toEqual([
      "pipeline_run_id",
      "step_run_id",
      "step_name",
      "kind",
      "correlation_id",
      "index",
      "payload",
    ]);
  });

  test("goes on behind a Last-Event-ID, and tells a gap when that is gone", async () => {
    await post("lost", batchOf("a", "b", "c", "d"));
    const all = jsonOf(await ask(gateway.port, { path: "/api/v1/runs/lost/events" }))["events"] as { id: string }[];
    gateway.broker.trim("lost", 2);
    const path = "/api/v1/runs/lost/events";
    const gone = jsonOf(await ask(gateway.port, { path, headers: { "Last-Event-ID": all[0]!.id } }));
    expect(gone["gap"]).toMatchObject({ reason: "retention", from: all[0]!.id, to: all[2]!.id });
    expect(gone["events"]).toHaveLength(2);
    const kept = jsonOf(await ask(gateway.port, { path, headers: { "Last-Event-ID": all[2]!.id } }));
    expect(kept).toMatchObject({ gap: null, next: null, events: [{ id: all[3]!.id }] });
  });

  test("of a run that nobody knows is empty", async () => {
    expect(jsonOf(await ask(gateway.port, { path: "/api/v1/runs/unknown/events" }))).toEqual({
      events: [],
      next: null,
      gap: null,
    });
  });

  test("passes over entries that are no events", async () => {
    await post("mixed", batchOf("x"));
    await ask(gateway.port, { method: "POST", path: "/api/v1/runs/mixed/end" });
    expect(await textsOf("mixed")).toEqual(["x"]);
  });

  test("of large events stops at 4 MiB, and goes on without gap or overlap", async () => {
    const large = (n: number) => `${n} ${"x".repeat(65_000)}`;
    for (let n = 0; n < 2; n++) await post("large", batchOf(...Array.from({ length: 200 }, (_, m) => large(n * 200 + m))));
    const seen: string[] = [];
    for (let next: string | null = "", pages = 0; next !== null && pages < 20; pages++) {
      const answer = await ask(gateway.port, { path: `/api/v1/runs/large/events?limit=1000&since=${next}` });
      expect(answer.body.length).toBeLessThan(4.1 * 1024 * 1024);
      const body = jsonOf(answer);
      expect(body["gap"]).toBeNull();
      seen.push(...(body["events"] as { event: { payload: { text: string } } }[]).map(({ event }) => event.payload.text));
      next = body["next"] as string | null;
    }
    expect(seen.map((text) => Number.parseInt(text, 10))).toEqual(Array.from({ length: 400 }, (_, n) => n));
  });

  test("beside long answers that hold all the memory for them: 503 for a second, but short ones go out", async () => {
    const small = await startTestServer({ settings: { answerBudgetBytes: 50_000 } });
    await post("r", batchOf(...Array.from({ length: 10 }, () => "x".repeat(10_000))), {}, small);
    const refused = await ask(small.port, { path: "/api/v1/runs/r/events" });
    expect(refused.status).toBe(503);
    expect(headerOf(refused, "retry-after")).toBe("1");
    for (const limit of [4, 4, 1])
      expect((await ask(small.port, { path: `/api/v1/runs/r/events?limit=${limit}` })).status).toBe(200);
    await small.close();
  });
});
