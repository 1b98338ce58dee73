/** `penstock bench` as a user runs it: against a real gateway, and against servers with a fault that it must catch. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { createServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCertificates } from "../support/certificates.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { Cli } from "./run-cli.ts";
import { json, ScriptedGateway, type SeenRequest } from "./scripted-gateway.ts";

const LIMIT_MS = 25_000;
const folder = mkdtempSync(join(tmpdir(), "penstock-bench-"));
const saved = join(folder, "saved.json");
let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ flags: ["--max-subscribers-per-stream", "20"] });
});
afterAll(async () => {
  await gateway?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const SMALL = ["--readers", "20", "--rate", "40", "--seconds", "0.4", "--replay-events", "50", "--connect-rate", "200"];

async function bench(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const cli = new Cli(["bench", ...args]);
  const code = await cli.exitCode(LIMIT_MS);
  return { code, stdout: cli.stdout, stderr: cli.stderr };
}

const admin = (): string[] => ["--admin-url", `http://127.0.0.1:${gateway.adminPort}`];

describe("against a gateway", () => {
  it("runs every workload, finds no fault, and leaves nothing open", { timeout: LIMIT_MS }, async () => {
    const { code, stdout, stderr } = await bench(gateway.url, ...admin(), ...SMALL, "--json", "--save", saved);
    expect(stderr).toBe("");
    const document = JSON.parse(stdout);
    expect(readFileSync(saved, "utf8")).toBe(stdout);
    expect(document).toMatchObject({ format: 1, interrupted: false, noGatewayFigures: null, target: { url: gateway.url } });
    expect(document.machine).toMatchObject({
      cores: expect.any(Number),
      cpu: expect.any(String),
      node: process.version.slice(1),
    });
    expect(
      document.results.map((each: { workload: string; verdict: string; reasons: string[] }) => [
        each.workload,
        each.verdict,
        each.reasons,
      ]),
    ).toEqual(["connect", "fan-out", "many-runs", "replay", "stalled"].map((name) => [name, "ok", []]));
    expect(code).toBe(0);
    const events = document.results.map(({ judged }: { judged: { events: number } }) => judged.events);
    // 16 events to 20 readers of one run; to 2 of each of 10 runs; 50 events to each of 20; 16 to 20 readers, twice.
    expect(events).toEqual([0, 320, 32, 1_000, 640]);
    const [connect, fanOut, , , stalled] = document.results;
    expect(stalled.measures).toMatchObject({ calmP99Ms: expect.any(Number), catchUpSeconds: expect.any(Number) });
    expect(connect.measures).toMatchObject({
      connectsPerSecond: expect.any(Number),
      cpuMicrosPerConnect: expect.any(Number),
      eventsPerSecond: null,
    });
    expect(fanOut.measures).toMatchObject({
      eventsPerSecond: expect.any(Number),
      latencyP50Ms: expect.any(Number),
      latencyMaxMs: expect.any(Number),
      cpuSecondsPerMillion: expect.any(Number),
    });
    expect(fanOut.measures.latencyP50Ms).toBeLessThanOrEqual(fanOut.measures.latencyP999Ms);
    expect(fanOut.measures.latencyP50Ms).toBeGreaterThan(0);
    await gateway.waitForMetric("penstock_connections", (value) => value === 0);
    const metrics = await gateway.metrics();
    expect(metrics.get('penstock_connections_closed_total{reason="end"}')).toBe(100);
  });

  it("prints a table, and fails where something is worse than what was saved", { timeout: LIMIT_MS }, async () => {
    const then = JSON.parse(readFileSync(saved, "utf8"));
    then.results[0].measures.connectsPerSecond *= 10;
    writeFileSync(saved, JSON.stringify(then));
    const { code, stdout, stderr } = await bench(
      gateway.url,
      ...SMALL,
      "--workload",
      "connect",
      "--compare",
      saved,
      "--admin-url",
      gateway.url,
    );
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^workload +readers +runs +\/s/m);
    expect(stdout).toMatch(/^connect +20 +1 +[\d.,]+ +– +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +– +– +–$/m);
    expect(stdout).toMatch(/^connect +ok +all 20 readers heard the end of their run$/m);
    expect(stdout).toMatch(/^connect +connects a second +[\d.,]+ +[\d.,]+ +0\.\d\d +worse$/m);
    expect(stdout).toMatch(/^\d figures? (is|are) worse by more than 20 %\.$/m);
    expect(stdout).toContain("has no metrics of Penstock");
    expect(code).toBe(1);
  });

  it("says what to set where a run does not take so many readers", { timeout: LIMIT_MS }, async () => {
    const { code, stdout } = await bench(gateway.url, ...admin(), "-w", "fan-out", "--readers", "30", "--runs", "1");
    expect(code).toBe(1);
    const text = stdout.replace(/\s+/g, " ");
    expect(text).toContain("fan-out failed reader 21 was refused: 503: This run has as many subscribers");
    expect(text).toContain("give more --runs, or start the gateway with --max-subscribers-per-stream 30");
    await gateway.waitForMetric("penstock_connections", (value) => value === 0);
  });

  it("gives what there is when it is interrupted, and ends its runs", { timeout: LIMIT_MS }, async () => {
    const cli = new Cli([
      "bench",
      gateway.url,
      ...admin(),
      "-w",
      "fan-out,replay",
      "--json",
      "--readers",
      "10",
      "--seconds",
      "600",
    ]);
    const before = (await gateway.metrics()).get("penstock_deliveries_total") ?? 0;
    await gateway.waitForMetric("penstock_deliveries_total", (value) => value > before);
    cli.child.kill("SIGINT");
    expect(await cli.exitCode(LIMIT_MS)).toBe(1);
    expect(cli.stderr).toBe("penstock: ending its runs; once more leaves at once\n");
    const document = JSON.parse(cli.stdout);
    expect(document.interrupted).toBe(true);
    expect(document.results).toMatchObject([{ workload: "fan-out", verdict: "interrupted", reasons: [] }]);
    expect(document.results[0].judged.events).toBeGreaterThan(0);
    await gateway.waitForMetric("penstock_connections", (value) => value === 0);
  });
});

describe("before it loads anything", () => {
  it("refuses another machine, where nobody said that this is meant", async () => {
    const { code, stdout, stderr } = await bench("http://runs.example.org");
    expect(code).toBe(2);
    expect(stderr).toContain("runs.example.org is not this machine. A bench is load; give --remote");
    expect(stdout).toBe("");
  });

  it("says that no gateway answers, and how to start one", async () => {
    const server = await new ScriptedGateway().start();
    server.close();
    const { code, stderr } = await bench(server.url);
    expect(code).toBe(1);
    expect(stderr).toContain(`No gateway answers at ${server.url} (ECONNREFUSED); start one, such as: penstock gateway`);
  });

  it("finds out that what answers is no Penstock", async () => {
    const server = await new ScriptedGateway(json(200, { version: "0.98.0" })).start();
    const { code, stderr } = await bench(server.url);
    server.close();
    expect(code).toBe(1);
    expect(stderr).toContain("is no Penstock");
  });
});

describe("a server with a fault is caught:", () => {
  it.each([
    ["one that doubles an event", (frame: string, n: number) => (n === 3 ? frame + frame : frame), "events doubled: 2"],
    ["one that loses an event", (frame: string, n: number) => (n === 3 ? "" : frame), "events lost without a gap: 2"],
    ["one without a fault", (frame: string) => frame, null],
  ])("%s", { timeout: LIMIT_MS }, async (_, spoil, fault) => {
    const server = await faultyGateway(spoil);
    const args = [
      "-w",
      "fan-out",
      "--readers",
      "2",
      "--runs",
      "1",
      "--rate",
      "50",
      "--seconds",
      "0.2",
      "--token",
      "tok-1",
      "--json",
    ];
    const { code, stdout } = await bench(`${server.url}/zenml/`, ...args, "--admin-url", server.url);
    server.close();
    const [result] = JSON.parse(stdout).results;
    expect(result.reasons).toEqual(fault === null ? [] : [fault]);
    expect(result.verdict).toBe(fault === null ? "ok" : "faulty");
    expect(code).toBe(fault === null ? 0 : 1);
    const requests = server.seen.filter(({ url }) => url.startsWith("/zenml/api/v1/runs/"));
    expect(requests.length).toBeGreaterThan(3);
    for (const { headers } of requests) expect(headers.authorization).toBe("Bearer tok-1");
  });
});

it("reads and publishes through TLS", { timeout: LIMIT_MS }, async () => {
  const certificates = await createCertificates();
  const credentials = { cert: readFileSync(certificates.cert), key: readFileSync(certificates.key) };
  const proxy = createServer(credentials, (socket) => pipeline(socket, connect(gateway.port, "127.0.0.1"), socket, () => {}));
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = `https://localhost:${(proxy.address() as AddressInfo).port}`;
  const cli = new Cli(["bench", url, ...admin(), ...SMALL, "-w", "replay", "--json"], { NODE_EXTRA_CA_CERTS: certificates.ca });
  const code = await cli.exitCode(LIMIT_MS);
  proxy.close();
  await certificates.remove();
  expect(cli.stderr).toBe("");
  expect(JSON.parse(cli.stdout).results).toMatchObject([{ verdict: "ok", judged: { readers: 20, events: 1_000 } }]);
  expect(code).toBe(0);
});

/** Serves one run as a gateway does, but for what `spoil` makes of a frame. */
async function faultyGateway(spoil: (frame: string, n: number) => string): Promise<ScriptedGateway> {
  const readers: ServerResponse[] = [];
  let count = 0;
  const server = new ScriptedGateway((response, request) => {
    const run = /\/runs\/([^/]+)\//.exec(request.url)?.[1];
    if (request.url.endsWith("/api/v1/info")) json(200, { penstock_version: "0.1.0" })(response, request);
    else if (request.url.endsWith("/events/stream")) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("retry: 1000\n: ok\n:\n");
      readers.push(response);
    } else if (request.url.endsWith("/end")) {
      for (const reader of readers) reader.end("event: end\ndata: {}\n\n");
      json(200, { last_id: "1700000000001-0" })(response, request);
    } else if (request.url.endsWith("/events")) {
      for (const frame of framesOf(request, run ?? "")) {
        for (const reader of readers) reader.write(spoil(frame(count), count));
        count++;
      }
      json(200, { count: 1, last_id: null })(response, request);
    } else json(404, { detail: "not found" })(response, request);
  });
  return server.start();
}

function framesOf({ body }: SeenRequest, run: string): ((n: number) => string)[] {
  const { events } = JSON.parse(body) as { events: { kind: string; payload: object }[] };
  return events.map(({ kind, payload }) => (n) => {
    const data = { pipeline_run_id: run, step_run_id: null, step_name: null, kind, correlation_id: null, index: null, payload };
    return `id: 1700000000000-${n + 1}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
  });
}
