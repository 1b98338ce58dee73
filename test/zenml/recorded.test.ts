/**
 * Requests of ZenML's real producer (zenml 0.98.0), recorded in 33 situations, sent again byte for byte. Each must get an answer that keeps
 * the producer working: 200 with an integer `count`, a 401 that it understands, and never 405 or 501, which mute it for good.
 */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { headerOf, RawConnection, type RawResponse } from "../support/raw-http.ts";

interface RecordedRequest {
  readonly client_port: number;
  readonly method: string;
  readonly path: string;
  readonly http_version: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
}

const FOLDER = new URL("../fixtures/zenml/", import.meta.url);
const FILES = (await readdir(FOLDER)).filter((name) => /^\d\d_.*\.json$/.test(name)).sort();
/** Its only batch has a kind with a line break, which ZenML's server takes and cannot deliver. */
const LINE_BREAK_FILE = "50_client_side_validation.json";
const TOKENS = ["TEST-TOKEN-abc", "TOK-FROM-LOGIN"];

it("has all 33 recordings", () => {
  expect(FILES).toHaveLength(33);
});

describe("without authentication", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  it.each(FILES.filter((file) => file !== LINE_BREAK_FILE))("%s: each batch is confirmed, a repeated one once", async (file) => {
    const first = new Map<string, string>();
    for (const { request, answer } of await replay(gateway, file)) {
      if (request.method === "GET") expectInfo(answer);
      if (!isPublish(request)) continue;
      expect(answer.status).toBe(200);
      const body = answer.body.toString();
      expect(JSON.parse(body)).toEqual({ count: eventsOf(request).length, last_id: expect.stringMatching(/^\d+-\d+$/) });
      // The producer repeats a batch with the same key when an answer was lost: it gets the first answer again.
      const key = keyOf(request);
      expect(body).toBe(first.get(key) ?? body);
      first.set(key, body);
    }
    expect(first.size).toBeGreaterThan(0);
  });

  it("has stored each batch of each recording once, in order and unchanged", async () => {
    const expected = new Map<string, unknown[]>();
    for (const file of FILES) {
      const seen = new Set<string>();
      for (const request of (await load(file)).filter(isPublish)) {
        if (file === LINE_BREAK_FILE || seen.has(keyOf(request))) continue;
        seen.add(keyOf(request));
        const runId = request.path.split("/").at(-2) ?? "";
        expected.set(runId, [...(expected.get(runId) ?? []), ...eventsOf(request)]);
      }
    }
    for (const [runId, events] of expected) {
      const reader = await gateway.stream(runId);
      await reader.waitForPublished(events.length);
      expect(reader.published.map(({ data }) => JSON.parse(data))).toEqual(events);
      reader.close();
    }
  });

  it(`${LINE_BREAK_FILE}: a kind with a line break refuses its batch with 400, after which the producer goes on`, async () => {
    const [answer] = (await replay(gateway, LINE_BREAK_FILE)).filter(({ request }) => isPublish(request));
    expect(answer?.answer.status).toBe(400);
    expect(JSON.parse(answer?.answer.body.toString() ?? "")).toEqual({ detail: expect.stringContaining("events[4]") });
  });

  it("takes that batch without the line break: empty kinds, the largest payload, numbers of any size", async () => {
    const request = (await load(LINE_BREAK_FILE)).find(isPublish)!;
    const runId = "aaaaaaaa-0000-4000-8000-00000000000f";
    const body = request.body.replaceAll("aaaaaaaa-0000-4000-8000-000000000001", runId).replace('"a\\nb"', '"a-b"');
    const answer = await gateway.publish(runId, body);
    expect(answer.body).toMatchObject({ count: 14 });
    const reader = await gateway.stream(runId);
    await reader.waitForPublished(14);
    expect(reader.published.map(({ data }) => JSON.parse(data))).toEqual((JSON.parse(body) as { events: unknown[] }).events);
    expect(reader.text).toContain('"payload":{"v":1180591620717411303424}');
    reader.close();
  });
});

describe("with static tokens", () => {
  let gateway: Gateway;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "penstock-recorded-"));
    const tokensFile = join(folder, "tokens.json");
    const tokens = TOKENS.map((token, index) => ({ id: `holder-${index}`, sha256: sha256(token), rights: ["publish"] }));
    await writeFile(tokensFile, JSON.stringify({ tokens }));
    gateway = await startGateway({ flags: ["--auth", "static", "--tokens-file", tokensFile] });
  });
  afterAll(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it.each(FILES)("%s: a 401 that makes the producer send its token, then its answer", async (file) => {
    for (const { request, answer } of await replay(gateway, file)) {
      if (request.method === "GET") expectInfo(answer);
      if (!isPublish(request)) continue;
      const token = request.headers.some(([name]) => name.toLowerCase() === "authorization");
      const right = file === LINE_BREAK_FILE ? 400 : 200;
      expect(answer.status).toBe(token ? right : 401);
      // Without this header the producer does not take the 401 for one, and the batch is lost.
      if (!token) expect(headerOf(answer, "www-authenticate")).toMatch(/^Bearer/);
    }
  });
});

/** Sends the requests of a recording in their order, each on the connection that the producer used for it. */
async function replay(gateway: Gateway, file: string): Promise<{ request: RecordedRequest; answer: RawResponse }[]> {
  const connections = new Map<number, { connection: RawConnection; sent: number }>();
  const exchanges: { request: RecordedRequest; answer: RawResponse }[] = [];
  for (const request of await load(file)) {
    const used = connections.get(request.client_port) ?? { connection: await RawConnection.open(gateway.port), sent: 0 };
    connections.set(request.client_port, used);
    await used.connection.send(bytesOf(request));
    used.sent++;
    const answer = (await used.connection.responses(used.sent))[used.sent - 1];
    if (answer === undefined) throw new Error(`${file}: ${request.method} ${request.path} got no answer`);
    expect([405, 501]).not.toContain(isPublish(request) ? answer.status : 0);
    exchanges.push({ request, answer });
  }
  for (const { connection } of connections.values()) connection.close();
  return exchanges;
}

async function load(file: string): Promise<RecordedRequest[]> {
  return (JSON.parse(await readFile(new URL(file, FOLDER), "utf8")) as { requests: RecordedRequest[] }).requests;
}

function bytesOf({ method, path, http_version: version, headers, body }: RecordedRequest): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `${method} ${path} ${version}\r\n${lines}\r\n${body}`;
}

/** A batch for a run; one recording goes on to where a redirect led it, which is no route of ours. */
function isPublish({ method, path }: RecordedRequest): boolean {
  return method === "POST" && path.startsWith("/api/v1/runs/") && path.endsWith("/events");
}

function eventsOf(request: RecordedRequest): unknown[] {
  return (JSON.parse(request.body) as { events: unknown[] }).events;
}

function keyOf(request: RecordedRequest): string {
  return request.headers.find(([name]) => name === "Idempotency-Key")?.[1] ?? "";
}

function expectInfo(answer: RawResponse): void {
  expect(answer.status).toBe(200);
  const info = JSON.parse(answer.body.toString()) as Record<string, unknown>;
  expect(info["version"]).toMatch(/^\d+\.\d+\.\d+/);
  expect(info["auth_scheme"]).toEqual(expect.any(String));
}

function sha256(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
