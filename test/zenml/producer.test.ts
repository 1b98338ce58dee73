/** ZenML's real producer (PyPI zenml 0.98.0) publishes into a running gateway: everything arrives, in order and unchanged. */
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { streamKey } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { LineProcess } from "../support/line-process.ts";
import { producerPython } from "../support/python.ts";
import { startRedis } from "../support/redis-servers.ts";
import type { SseReader } from "../support/sse-reader.ts";
import { startLossyProxy } from "./lossy-proxy.ts";

const DRIVER = fileURLToPath(new URL("drive_publisher.py", import.meta.url));
const INSTALL_LIMIT_MS = 600_000;
const EVENTS = 500;
const LIMIT_MS = 60_000;
const STEP_RUN = "cccccccc-0000-4000-8000-000000000003";
const TOKEN = "a-token-of-the-producer";
/** As the stream must show it; Python sends it with ASCII escapes and spaces. */
const PAYLOAD = '{"text":"ü€😀 \\u2028\\n","ratio":1.0,"big":1180591620717411303424,"10":null,"9":[true,-0.5]}';

interface Report {
  readonly sent: number;
  readonly flushed: boolean;
  readonly disabled: boolean;
}

describe("ZenML's producer", () => {
  let python: string;

  beforeAll(async () => {
    const found = await producerPython();
    if (found === null) throw new Error("needs python3 of 3.10 or later with venv");
    python = found;
  }, INSTALL_LIMIT_MS);

  it("500 events arrive live, in order and unchanged", { timeout: LIMIT_MS }, async () => {
    const gateway = await startGateway();
    const runId = "aaaaaaaa-0000-4000-8000-000000000500";
    const reader = await gateway.stream(runId);
    await drive(gateway.url, runId);
    await expectAll(reader, runId);
    expect(reader.gaps).toEqual([]);
    await gateway.stop();
  });

  describe("with static tokens", () => {
    let gateway: Gateway;
    let folder: string;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "penstock-producer-"));
      const tokensFile = join(folder, "tokens.json");
      const sha256 = createHash("sha256").update(TOKEN).digest("hex");
      await writeFile(tokensFile, JSON.stringify({ tokens: [{ id: "producer", sha256, rights: ["publish", "read"] }] }));
      gateway = await startGateway({ flags: ["--auth", "static", "--tokens-file", tokensFile] });
    });
    afterAll(async () => {
      await gateway?.stop();
      await rm(folder, { recursive: true, force: true });
    });

    it("sends its token after the first 401, and nothing is lost by it", { timeout: LIMIT_MS }, async () => {
      const runId = "aaaaaaaa-0000-4000-8000-000000000401";
      const reader = await gateway.stream(runId, "", { token: TOKEN });
      await drive(gateway.url, runId, "--token", TOKEN, "--no-preauth");
      await expectAll(reader, runId);
      expect(gateway.logs()).not.toContain(TOKEN);
      reader.close();
    });
  });

  it("a batch whose answer was lost is sent again to another replica, and stored once", { timeout: LIMIT_MS }, async () => {
    const redis = await startRedis();
    const replicas = await Promise.all([1, 2].map(() => startGateway({ broker: "redis", redisUrl: redis.url })));
    const proxy = await startLossyProxy(
      replicas.map(({ port }) => port),
      3,
    );
    const runId = "aaaaaaaa-0000-4000-8000-000000000002";
    const readers = await Promise.all(replicas.map((replica) => replica.stream(runId)));
    await drive(proxy.url, runId);
    for (const reader of readers) await expectAll(reader, runId);
    expect(proxy.lostAnswers).toBe(3);
    expect(Number(await redis.cli("XLEN", streamKey(runId)))).toBe(EVENTS);
    await proxy.close();
    await Promise.all(replicas.map((replica) => replica.stop()));
    await redis.stop();
  });

  async function drive(url: string, runId: string, ...flags: string[]): Promise<void> {
    const step = ["--step-name", "train", "--step-run-id", STEP_RUN, "--correlation-id", "gen-1"];
    const args = [DRIVER, "--url", url, "--run-id", runId, "--n", String(EVENTS), "--payload", PAYLOAD, ...step, ...flags];
    // ZenML prints log lines of its own beside the driver's report.
    const driver = new LineProcess<Report>(python, args, (line) => (line.startsWith("{") ? (JSON.parse(line) as Report) : null));
    const report = (await driver.untilCount(1, LIMIT_MS))[0];
    expect(report).toMatchObject({ sent: EVENTS, flushed: true, disabled: false });
    expect(await driver.untilExit(LIMIT_MS)).toBe(0);
  }
});

async function expectAll(reader: SseReader, runId: string): Promise<void> {
  await reader.waitForPublished(EVENTS);
  const expected = Array.from({ length: EVENTS }, (_, seq) => {
    const payload = `${PAYLOAD.slice(0, -1)},"seq":${seq}}`;
    return `{"pipeline_run_id":"${runId}","step_run_id":"${STEP_RUN}","step_name":"train","kind":"token","correlation_id":"gen-1","index":${seq},"payload":${payload}}`;
  });
  expect(reader.published.map(({ data }) => data)).toEqual(expected);
}
