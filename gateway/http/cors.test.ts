/** Pages of other origins, and law 8: nothing of a request goes into a header field of the answer. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask } from "../../test/support/http-client.ts";
import { startTestServer, type TestServer } from "../../test/support/http-server.ts";
import { headerOf, sendRaw } from "../../test/support/raw-http.ts";
import { checkedHeader } from "./answer.ts";
import { createCors } from "./cors.ts";

const PAGE = "https://app.example.org";
const INFO = "/api/v1/info";
const STREAM = "/api/v1/runs/r/events/stream";

let listed: TestServer;
let open: TestServer;
let closed: TestServer;

beforeAll(async () => {
  [listed, open, closed] = await Promise.all([
    startTestServer({ settings: { allowedOrigins: [PAGE] } }),
    startTestServer({ settings: { allowedOrigins: ["*"] } }),
    startTestServer(),
  ]);
});
afterAll(() => Promise.all([listed.close(), open.close(), closed.close()]));

describe("a listed origin", () => {
  test("may call, with cookies, and caches are told that it matters", async () => {
    const answer = await ask(listed.port, { path: INFO, headers: { Origin: PAGE } });
    expect(headerOf(answer, "access-control-allow-origin")).toBe(PAGE);
    expect(headerOf(answer, "access-control-allow-credentials")).toBe("true");
    expect(headerOf(answer, "vary")).toBe("Origin");
  });

  test("may follow a stream", async () => {
    const connection = await sendRaw(listed.port, `GET ${STREAM} HTTP/1.1\r\nHost: a\r\nOrigin: ${PAGE}\r\n\r\n`);
    const head = await connection.head();
    expect(headerOf(head, "access-control-allow-origin")).toBe(PAGE);
    expect(headerOf(head, "vary")).toBe("Origin");
    connection.close();
  });

  test.each(["https://App.Example.org", "https://app.example.org:443"])("may be listed as %s", (entry) => {
    expect(createCors([entry]).headersFor(PAGE)).toContainEqual(["access-control-allow-origin", PAGE]);
  });

  test("may be none at all, but then without cookies: every sandboxed frame has that one", () => {
    const headers = createCors(["null"]).headersFor("null");
    expect(headers).toContainEqual(["access-control-allow-origin", "null"]);
    expect(headers).toContainEqual(["vary", "Origin"]);
    expect(headers.map(([name]) => name)).not.toContain("access-control-allow-credentials");
  });

  test("may read why it was refused", async () => {
    const answer = await ask(listed.port, { path: "/nope", headers: { Origin: PAGE } });
    expect(answer.status).toBe(404);
    expect(headerOf(answer, "access-control-allow-origin")).toBe(PAGE);
  });

  test("may resume and publish: the preflight allows what these need", async () => {
    const headers = {
      Origin: PAGE,
      "Access-Control-Request-Method": "GET",
      "Access-Control-Request-Headers": "last-event-id, authorization",
    };
    const answer = await ask(listed.port, { method: "OPTIONS", path: STREAM, headers });
    expect(answer.status).toBe(204);
    expect(headerOf(answer, "content-length")).toBeNull();
    expect(headerOf(answer, "access-control-allow-origin")).toBe(PAGE);
    expect(headerOf(answer, "access-control-allow-methods")).toContain("GET");
    const allowed = headerOf(answer, "access-control-allow-headers")!.toLowerCase().split(", ");
    expect(allowed).toEqual(expect.arrayContaining(["last-event-id", "authorization", "content-type", "idempotency-key"]));
  });
});

describe("another origin", () => {
  test.each([
    "https://evil.example.org",
    `${PAGE}.evil.example.org`,
    `${PAGE}:444`,
    "http://app.example.org",
    "null",
    PAGE.toUpperCase(),
  ])("%s is answered without leave", async (origin) => {
    const answer = await ask(listed.port, { path: INFO, headers: { Origin: origin } });
    expect(headerOf(answer, "access-control-allow-origin")).toBeNull();
    expect(headerOf(answer, "vary")).toBe("Origin");
    const headers = { Origin: origin, "Access-Control-Request-Method": "GET" };
    const preflight = await ask(listed.port, { method: "OPTIONS", path: STREAM, headers });
    expect(headerOf(preflight, "access-control-allow-methods")).toBeNull();
  });

  test("may call where all may, without credentials", async () => {
    const answer = await ask(open.port, { path: INFO, headers: { Origin: PAGE } });
    expect(headerOf(answer, "access-control-allow-origin")).toBe("*");
    expect(headerOf(answer, "access-control-allow-credentials")).toBeNull();
    const headers = { Origin: PAGE, "Access-Control-Request-Method": "POST" };
    const preflight = await ask(open.port, { method: "OPTIONS", path: "/api/v1/runs/r/events", headers });
    expect(headerOf(preflight, "access-control-allow-headers")).toContain("Authorization");
  });
});

test("without a list no answer speaks of origins", async () => {
  const answer = await ask(closed.port, { path: INFO, headers: { Origin: PAGE } });
  expect(answer.headers.filter(([name]) => name === "vary" || name.startsWith("access-control"))).toEqual([]);
});

test("law 8: no text of a request comes back in a header field", async () => {
  const mark = "x-mark-4711";
  const headers = {
    Origin: `https://${mark}`,
    "Access-Control-Request-Method": mark,
    "Access-Control-Request-Headers": mark,
    "Last-Event-ID": mark,
    "Idempotency-Key": mark,
    "X-Request-ID": mark,
  };
  for (const gateway of [listed, open])
    for (const method of ["GET", "OPTIONS", "HEAD"]) {
      const answer = await ask(gateway.port, { method, path: `${STREAM}?since=${mark}`, headers });
      expect(JSON.stringify(answer.headers)).not.toContain(mark);
    }
});

test("law 8: a list with an entry that cannot be sent is refused at the start", () => {
  expect(() => createCors(["https://a.example.org\r\nx: y"])).toThrow("cannot be sent");
});

test("law 8: a value that would end its line is never sent", () => {
  expect(() => checkedHeader(["x", "a\r\nset-cookie: b"])).toThrow("cannot be sent");
  expect(() => checkedHeader(["x\r\ny", "a"])).toThrow("cannot be sent");
  expect(() => checkedHeader(["x", "a\0"])).toThrow("cannot be sent");
  expect(checkedHeader(["x", "a b\t~"])).toEqual(["x", "a b\t~"]);
});
