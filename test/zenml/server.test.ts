/** A real ZenML 0.98.0 server and a gateway on one Redis with one deployment id: each reads what the other wrote, in the same bytes. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { findServerPython, serverPython } from "../support/python.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";
import { openStream, type SseReader } from "../support/sse-reader.ts";
import { startZenmlServer, type ZenmlServer } from "./zenml-server.ts";

const INSTALL_LIMIT_MS = 900_000;
/** Null on a machine without Python 3.12, which has nothing to test here; the run says so at its end. */
const base = await findServerPython();

/** Payloads as Python's json sends them, in which both sides agree to the byte. */
const PAYLOADS = [
  '{"text": "\\u00fc\\u20ac\\ud83d\\ude00", "n": 1}',
  '{"ratio": 1.0, "big": 12345678901234567890123, "negative": -0.0}',
  '{"10": null, "9": [true, {"a": []}], "__proto__": {"b": "\\u0000\\u0001\\t\\n\\"\\\\/"}}',
  "{}",
];

it("a machine without Python 3.12 is named at the end of the run", async () => {
  const folder = await mkdtemp(join(tmpdir(), "penstock-notes-"));
  const notes = join(folder, "notes");
  expect(await findServerPython({ HOME: folder, PATH: folder, PENSTOCK_TEST_NOTES: notes })).toBeNull();
  expect(await readFile(notes, "utf8")).toMatch(/ZenML's server.*PYTHON312.*\n$/);
  await rm(folder, { recursive: true });
});

if (base !== null)
  describe("beside a ZenML server", () => {
    let redis: RedisServer;
    let zenml: ZenmlServer;
    let gateway: Gateway;

    beforeAll(async () => {
      redis = await startRedis();
      zenml = await startZenmlServer((await serverPython())!, redis.url, 4);
      gateway = await startGateway({ broker: "redis", redisUrl: redis.url, deploymentId: zenml.deploymentId });
    }, INSTALL_LIMIT_MS);
    afterAll(async () => {
      await gateway?.stop();
      await zenml?.stop();
      await redis?.stop();
    });

    it.each([
      { from: "the gateway", run: 0 },
      { from: "ZenML's server", run: 1 },
    ])("what $from stores, both hand over live and from history, in the same bytes", async ({ from, run }) => {
      const runId = zenml.runIds[run]!;
      const live = await Promise.all([readGateway(runId), readZenml(runId)]);
      const answer = await (from === "the gateway" ? gateway.publish(runId, batch(runId)) : publishToZenml(runId));
      expect(answer).toMatchObject({ status: 200, body: { count: PAYLOADS.length } });
      const lastId = answer.body.last_id;
      const late = await Promise.all([readGateway(runId), readZenml(runId)]);
      for (const reader of [...live, ...late]) {
        await reader.waitForPublished(PAYLOADS.length);
        expect(reader.lastEventId).toBe(lastId);
      }
      const [ours, theirs, oursLate, theirsLate] = [...live, ...late].map(framesOf);
      expect(ours).toEqual(theirs);
      expect(oursLate).toEqual(ours);
      expect(theirsLate).toEqual(ours);
      for (const reader of [...live, ...late]) reader.close();
    });

    it("the end that ZenML's server writes ends our streams, and a resume behind it", async () => {
      const runId = zenml.runIds[2]!;
      const reader = await readGateway(runId);
      const { body } = await publishToZenml(runId);
      await reader.waitForPublished(PAYLOADS.length);
      await zenml.setStatus(runId, "completed");
      await reader.waitForEnd();
      expect(reader.events.at(-1)).toMatchObject({ event: "end", data: "{}", id: null });
      const resumed = await gateway.stream(runId, "", { lastEventId: body.last_id ?? "" });
      await resumed.waitForEnd();
      expect(resumed.events.map(({ event }) => event)).toEqual(["end"]);
    });

    it("the end that the gateway writes ends the streams of ZenML's server", async () => {
      const runId = zenml.runIds[3]!;
      const reader = await readZenml(runId);
      expect((await gateway.publish(runId, batch(runId))).status).toBe(200);
      await reader.waitForPublished(PAYLOADS.length);
      expect((await fetch(gateway.runUrl(runId, "/end"), { method: "POST" })).status).toBe(200);
      await reader.waitForEnd();
      expect(reader.events.at(-1)).toMatchObject({ event: "end", data: "{}" });
    });

    it("tells producers the same deployment id as ZenML's server", async () => {
      const infos = await Promise.all([gateway.url, zenml.url].map(async (url) => (await fetch(`${url}/api/v1/info`)).json()));
      const [ours, theirs] = infos as { id: string; version: string }[];
      expect(ours?.id).toBe(theirs?.id);
    });

    function readGateway(runId: string): Promise<SseReader> {
      return gateway.stream(runId);
    }

    function readZenml(runId: string): Promise<SseReader> {
      return openStream(`${zenml.url}/api/v1/runs/${runId}/events/stream`, { token: zenml.token });
    }

    async function publishToZenml(runId: string): Promise<{ status: number; body: { last_id?: string | null } }> {
      const response = await fetch(`${zenml.url}/api/v1/runs/${runId}/events`, {
        method: "POST",
        headers: { authorization: `Bearer ${zenml.token}`, "content-type": "application/json" },
        body: batch(runId),
      });
      return { status: response.status, body: (await response.json()) as { last_id?: string | null } };
    }
  });

function batch(runId: string): string {
  const events = PAYLOADS.map(
    (payload, index) =>
      `{"pipeline_run_id": "${runId}", "step_run_id": null, "step_name": "train", "kind": "token", "correlation_id": "gen-1", "index": ${index}, "payload": ${payload}}`,
  );
  return `{"events": [${events.join(", ")}]}`;
}

/** The frames of events as they came, without the comments and the retry that only the gateway sends. */
function framesOf(reader: SseReader): string[] {
  return [...reader.text.matchAll(/^id: .*\nevent: .*\ndata: .*\n\n/gm)].map(([frame]) => frame);
}
