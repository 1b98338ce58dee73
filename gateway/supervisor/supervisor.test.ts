import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { MemoryLog } from "../../test/support/memory-log.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { loadConfig } from "../config/load.ts";
import type { GatewayConfig } from "../config.ts";
import { BrokerStartError, ListenError } from "../errors.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import { Supervisor } from "./supervisor.ts";
import type { WorkerHandle, WorkerHealth } from "./worker-handle.ts";

/** A worker without streams, which writes down what the supervisor asks of it. */
class BareWorker implements WorkerHandle {
  readonly calls: string[] = [];
  readonly #metrics: Metrics;
  present: WorkerHealth = { ready: true, detail: "memory broker", connections: 0 };
  startError: Error | null = null;
  letGo: () => void = () => {};
  holdsDrain = false;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  async start(): Promise<{ port: number }> {
    this.calls.push("start");
    if (this.startError !== null) throw this.startError;
    return { port: 4711 };
  }

  async drain(seconds: number): Promise<void> {
    this.calls.push(`drain ${seconds}`);
    if (this.holdsDrain) await new Promise<void>((resolve) => (this.letGo = resolve));
  }

  async snapshots() {
    return [{ worker: 0, metrics: await this.#metrics.snapshot() }];
  }

  health(): WorkerHealth {
    return this.present;
  }

  async close(): Promise<void> {
    this.calls.push("close");
  }
}

const open: Supervisor[] = [];
afterEach(async () => {
  for (const supervisor of open.splice(0)) await supervisor.close();
});

function build(flags: Record<string, unknown> = {}) {
  const config: GatewayConfig = loadConfig({
    flags: new Map<string, unknown>([
      ["adminPort", 0],
      ["drain.delaySeconds", 0],
      ["drain.seconds", 7],
      ...Object.entries(flags),
    ]),
    env: {},
    file: null,
  }).config;
  const metrics = createMetrics({ processMetrics: false });
  const worker = new BareWorker(metrics);
  const log = new MemoryLog();
  const supervisor = new Supervisor({ config, worker, metrics, log });
  open.push(supervisor);
  return { supervisor, worker, metrics, log };
}

async function ask(adminPort: number, path: string, method = "GET") {
  const response = await fetch(`http://127.0.0.1:${adminPort}${path}`, { method });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("the admin port", () => {
  it("gives the worker's metrics in Prometheus' text format", async () => {
    const { supervisor, metrics } = build();
    metrics.inc("penstock_gaps_total", "rollback", 3);
    const { adminPort, port } = await supervisor.start();
    expect(port).toBe(4711);
    const answer = await ask(adminPort, "/metrics");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(answer.text).toContain('penstock_gaps_total{reason="rollback"} 3\n');
    expect(answer.text).toContain("# TYPE penstock_connections gauge\n");
  });

  it("is alive and ready, and only ready falls with the broker", async () => {
    const { supervisor, worker } = build();
    const { adminPort } = await supervisor.start();
    expect((await ask(adminPort, "/readyz")).status).toBe(200);
    worker.present = { ready: false, detail: "Redis can neither be read nor waited for", connections: 0 };
    const unready = await ask(adminPort, "/readyz");
    expect(unready.status).toBe(503);
    expect(JSON.parse(unready.text)).toEqual({ status: "not ready", detail: "Redis can neither be read nor waited for" });
    expect((await ask(adminPort, "/healthz")).status).toBe(200);
  });

  it("answers HEAD without a body, other methods 405, other paths 404, and a query does no harm", async () => {
    const { supervisor } = build();
    const { adminPort } = await supervisor.start();
    expect(await ask(adminPort, "/healthz", "HEAD")).toMatchObject({ status: 200, text: "" });
    const wrong = await ask(adminPort, "/metrics", "POST");
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get("allow")).toBe("GET, HEAD");
    expect((await ask(adminPort, "/")).status).toBe(404);
    expect((await ask(adminPort, "/healthz?verbose")).status).toBe(200);
  });

  it("a taken port stops the start with the flag that chooses another", async () => {
    const stranger = createServer().listen(0, "127.0.0.1");
    await waitFor("the stranger listens", () => stranger.listening);
    const taken = (stranger.address() as AddressInfo).port;
    const { supervisor, worker } = build({ adminPort: taken });
    await expect(supervisor.start()).rejects.toThrow(ListenError);
    await expect(build({ adminPort: taken }).supervisor.start()).rejects.toThrow(
      `127.0.0.1:${taken} is taken by another program; choose another port with --admin-port.`,
    );
    expect(worker.calls).not.toContain("start");
    stranger.close();
  });
});

describe("start and end", () => {
  it("a broker that cannot be reached ends the start, and leaves no port open", async () => {
    const { supervisor, worker } = build();
    worker.startError = new BrokerStartError("no answer");
    await expect(supervisor.start()).rejects.toThrow("Stream broker startup probe failed: no answer");
    expect(worker.calls).toEqual(["start", "close"]);
  });

  it("the drain: not ready at once, alive until the end, then the streams, then nothing", async () => {
    const { supervisor, worker, metrics, log } = build();
    const { adminPort } = await supervisor.start();
    worker.holdsDrain = true;
    const drained = supervisor.drain();
    await waitFor("the worker is asked to drain", () => worker.calls.includes("drain 7"));
    const unready = await ask(adminPort, "/readyz");
    expect([unready.status, JSON.parse(unready.text).detail]).toEqual([503, "draining"]);
    expect((await ask(adminPort, "/healthz")).status).toBe(200);
    expect((await ask(adminPort, "/metrics")).text).toContain("penstock_draining 1\n");
    expect(metrics.value("penstock_draining")).toBe(1);
    worker.letGo();
    await drained;
    expect(worker.calls).toEqual(["start", "drain 7", "close"]);
    expect(log.entries.map(({ message }) => message)).toEqual(["draining", "stopped"]);
    await expect(ask(adminPort, "/healthz")).rejects.toThrow();
  });

  it("readiness is off during the pause before the drain", async () => {
    const { supervisor, worker } = build({ "drain.delaySeconds": 0.5 });
    const { adminPort } = await supervisor.start();
    const drained = supervisor.drain();
    expect((await ask(adminPort, "/readyz")).status).toBe(503);
    expect(worker.calls).toEqual(["start"]);
    await drained;
    expect(worker.calls).toEqual(["start", "drain 7", "close"]);
  });

  it("a client that keeps its connection to the admin port does not hold the end up", async () => {
    const { supervisor } = build();
    const { adminPort } = await supervisor.start();
    const socket = connect(adminPort, "127.0.0.1");
    socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((resolve) => socket.once("data", resolve));
    await supervisor.drain();
    socket.destroy();
  });
});
