/** Starts the gateway as a user does, as a process of its own, on free ports of the loopback. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endWithUs } from "./children.ts";
import { type OpenStreamOptions, openStream, type SseReader } from "./sse-reader.ts";
import { waitFor } from "./wait-for.ts";

/** The deployment id that tests use beside Redis. */
export const DEPLOYMENT_ID = "3f2b0c1e-0000-4000-8000-000000000001";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const START_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 10_000;

export interface GatewayOptions {
  /** Default `memory`; null: none configured. */
  readonly broker?: "memory" | "redis" | null;
  readonly redisUrl?: string;
  /** Default DEPLOYMENT_ID with Redis, none otherwise. */
  readonly deploymentId?: string;
  readonly flags?: readonly string[];
  /** Variables beside a cleaned environment: no PENSTOCK_ or ZENML_ variable of the caller reaches the gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** Path of a configuration file. */
  readonly configFile?: string;
  /** Or its content: written to a file for the gateway's life. */
  readonly config?: object;
}

export interface Gateway {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  readonly adminPort: number;
  readonly pid: number;
  /** All that it wrote to stdout and stderr. */
  logs(): string;
  /** Samples of /metrics by `name` or `name{label="value"}`. */
  metrics(): Promise<Map<string, number>>;
  /** Waits until a sample has (or passes) what the test needs. */
  waitForMetric(name: string, holds: (value: number) => boolean, limitMs?: number): Promise<number>;
  runUrl(runId: string, rest?: string): string;
  publish(runId: string, body: string | Buffer | object, headers?: Record<string, string>): Promise<PublishAnswer>;
  stream(runId: string, query?: string, options?: OpenStreamOptions): Promise<SseReader>;
  /** SIGTERM, with a short drain, then waits. Resolves with the exit code. */
  stop(): Promise<number | null>;
  kill9(): Promise<void>;
}

export interface PublishAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: { readonly count?: number; readonly last_id?: string | null; readonly detail?: string };
}

export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const { child, log } = await launch(options);
  try {
    const { port, adminPort } = await log.listening();
    return new RunningGateway(child, log, port, adminPort);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** Runs a gateway that is expected to give up at its start; resolves with what it said. */
export async function startFailing(options: GatewayOptions): Promise<{ code: number | null; logs: string }> {
  const { child, log } = await launch(options);
  const limit = setTimeout(() => child.kill("SIGKILL"), START_LIMIT_MS);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(limit);
  return { code, logs: log.text };
}

async function launch(options: GatewayOptions): Promise<{ child: ChildProcess; log: Log }> {
  const folder = options.config === undefined ? null : await mkdtemp(join(tmpdir(), "penstock-test-"));
  const child = spawn(process.execPath, ["gateway/main.ts", "gateway", ...(await flagsOf(options, folder))], {
    cwd: ROOT,
    env: environmentOf(options),
    stdio: ["ignore", "pipe", "pipe"],
  });
  endWithUs(child, () => {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  });
  return { child, log: new Log(child) };
}

class RunningGateway implements Gateway {
  readonly url: string;
  readonly port: number;
  readonly adminPort: number;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #log: Log;

  constructor(child: ChildProcess, log: Log, port: number, adminPort: number) {
    this.#child = child;
    this.#log = log;
    this.url = `http://127.0.0.1:${port}`;
    this.port = port;
    this.adminPort = adminPort;
    this.pid = child.pid ?? 0;
  }

  logs(): string {
    return this.#log.text;
  }

  async metrics(): Promise<Map<string, number>> {
    const response = await fetch(`http://127.0.0.1:${this.adminPort}/metrics`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`/metrics answered ${response.status}: ${text}`);
    return parseMetrics(text);
  }

  async waitForMetric(name: string, holds: (value: number) => boolean, limitMs = 10_000): Promise<number> {
    let last: number | undefined;
    const look = async () => {
      last = (await this.metrics()).get(name);
      return last !== undefined && holds(last);
    };
    await waitFor(name, look, limitMs).catch((error: unknown) => {
      throw new Error(`${name} is ${last} still`, { cause: error });
    });
    return last ?? 0;
  }

  runUrl(runId: string, rest = ""): string {
    return `${this.url}/api/v1/runs/${runId}${rest}`;
  }

  async publish(runId: string, body: string | Buffer | object, headers: Record<string, string> = {}): Promise<PublishAnswer> {
    const response = await fetch(this.runUrl(runId, "/events"), {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as PublishAnswer["body"] };
  }

  stream(runId: string, query = "", options: OpenStreamOptions = {}): Promise<SseReader> {
    return openStream(this.runUrl(runId, `/events/stream${query}`), options);
  }

  async stop(): Promise<number | null> {
    if (this.#exited()) return this.#child.exitCode;
    const closed = once(this.#child, "close");
    this.#child.kill("SIGTERM");
    const limit = setTimeout(() => this.#child.kill("SIGKILL"), STOP_LIMIT_MS);
    await closed;
    clearTimeout(limit);
    if (this.#child.signalCode === "SIGKILL")
      throw new Error(`the gateway did not stop within ${STOP_LIMIT_MS} ms:\n${this.logs()}`);
    return this.#child.exitCode;
  }

  async kill9(): Promise<void> {
    if (this.#exited()) return;
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
  }

  #exited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/** Collects the lines of a process and waits for the one that names its ports. */
class Log {
  text = "";
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8");
      stream?.on("data", (text: string) => {
        this.text += text;
      });
    }
  }

  async listening(): Promise<{ port: number; adminPort: number }> {
    let found: { port: number; adminPort: number } | null = null;
    const look = () => {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error("it ended");
      found = findPorts(this.text);
      return found !== null;
    };
    await waitFor("the gateway's line `listening`", look, START_LIMIT_MS).catch((error: unknown) => {
      throw new Error(`the gateway did not start:\n${this.text}`, { cause: error });
    });
    return found ?? { port: 0, adminPort: 0 };
  }
}

function findPorts(log: string): { port: number; adminPort: number } | null {
  for (const line of log.split("\n")) {
    if (!line.startsWith("{") || !line.includes('"listening"') || !line.endsWith("}")) continue;
    const { msg, port, adminPort } = JSON.parse(line) as { msg?: string; port?: number; adminPort?: number };
    if (msg === "listening" && port && adminPort) return { port, adminPort };
  }
  return null;
}

async function flagsOf(options: GatewayOptions, folder: string | null): Promise<string[]> {
  const flags = ["--port", "0", "--admin-port", "0"];
  const broker = options.broker === undefined ? "memory" : options.broker;
  if (broker !== null) flags.push("--broker", broker);
  const deploymentId = options.deploymentId ?? (broker === "redis" ? DEPLOYMENT_ID : undefined);
  if (deploymentId !== undefined) flags.push("--deployment-id", deploymentId);
  if (options.configFile !== undefined) flags.push("--config", options.configFile);
  if (folder !== null) {
    const file = join(folder, "penstock.json");
    await writeFile(file, JSON.stringify(options.config));
    flags.push("--config", file);
  }
  return [...flags, ...(options.flags ?? [])];
}

function environmentOf(options: GatewayOptions): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (!/^(PENSTOCK_|ZENML_|UWS_|VITEST|NODE_OPTIONS)/.test(name)) env[name] = value;
  }
  // As scripts/penstock sets it.
  env["MALLOC_MMAP_THRESHOLD_"] = "32768";
  env["PENSTOCK_DRAIN_DELAY_SECONDS"] = "0";
  env["PENSTOCK_DRAIN_SECONDS"] = "1";
  if (options.redisUrl !== undefined) env["ZENML_REDIS_BROKER_URL"] = options.redisUrl;
  return { ...env, ...options.env };
}

function parseMetrics(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    const space = line.lastIndexOf(" ");
    if (line.startsWith("#") || space < 0) continue;
    samples.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return samples;
}
