/** A real ZenML 0.98.0 server with live event streaming, on SQLite and the Redis that it is given. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { endWithUs } from "../support/children.ts";
import { freePort } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";

const run = promisify(execFile);
const START_LIMIT_MS = 150_000;
const SEED_SCRIPT = fileURLToPath(new URL("seed_runs.py", import.meta.url));

export interface ZenmlServer {
  readonly url: string;
  /** The `id` of its /api/v1/info. */
  readonly deploymentId: string;
  /** A bearer token of its user. */
  readonly token: string;
  /** Runs in progress. */
  readonly runIds: readonly string[];
  /** Changes the status of a run, as a finished pipeline does. */
  setStatus(runId: string, status: "completed" | "failed" | "resuming"): Promise<void>;
  stop(): Promise<void>;
}

export async function startZenmlServer(python: string, redisUrl: string, runs: number): Promise<ZenmlServer> {
  const folder = await mkdtemp(join(tmpdir(), "penstock-zenml-server-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    python,
    ["-m", "uvicorn", "zenml.zen_server.zen_server_api:app", "--host", "127.0.0.1", "--port", `${port}`],
    {
      env: environmentOf(folder, redisUrl),
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      log = (log + text).slice(-20_000);
    });
  }
  endWithUs(child);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const closed = once(child, "close");
      // SIGTERM would leave it waiting for its open streams.
      child.kill("SIGKILL");
      await closed;
    }
    await rm(folder, { recursive: true, force: true });
  };
  const isUp = async () => {
    if (child.exitCode !== null) throw new Error(`the ZenML server ended:\n${log}`);
    return fetch(`${url}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
  };
  try {
    await waitFor("the ZenML server is up", isUp, START_LIMIT_MS);
    const info = (await (await fetch(`${url}/api/v1/info`)).json()) as { id: string };
    const { stdout } = await run(python, [SEED_SCRIPT, url, String(runs)], { timeout: START_LIMIT_MS });
    const seeded = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as { runs: string[]; token: string };
    const setStatus = async (runId: string, status: string) => {
      const answer = await fetch(`${url}/api/v1/runs/${runId}`, {
        method: "PUT",
        headers: { authorization: `Bearer ${seeded.token}`, "content-type": "application/json" },
        body: JSON.stringify({ status }),
      });
      if (!answer.ok) throw new Error(`the ZenML server refused status ${status}: ${answer.status} ${await answer.text()}`);
    };
    return { url, deploymentId: info.id, token: seeded.token, runIds: seeded.runs, setStatus, stop };
  } catch (error) {
    await stop();
    throw new Error(`the ZenML server said:\n${log}`, { cause: error });
  }
}

function environmentOf(folder: string, redisUrl: string): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("ZENML_"));
  return {
    ...Object.fromEntries(inherited),
    ZENML_CONFIG_PATH: folder,
    ZENML_STORE_TYPE: "sql",
    ZENML_STORE_URL: `sqlite:///${folder}/zenml.db`,
    ZENML_ANALYTICS_OPT_IN: "false",
    ZENML_LOGGING_VERBOSITY: "WARN",
    ZENML_SERVER_DEPLOYMENT_TYPE: "other",
    ZENML_SERVER_AUTO_ACTIVATE: "true",
    ZENML_SERVER_AUTH_SCHEME: "OAUTH2_PASSWORD_BEARER",
    ZENML_SERVER_JWT_SECRET_KEY: "0123456789abcdef".repeat(4),
    ZENML_DEFAULT_USER_NAME: "default",
    ZENML_DEFAULT_USER_PASSWORD: "zenml",
    ZENML_SERVER_STREAM_BROKER_IMPLEMENTATION_SOURCE: "zenml.zen_server.streaming.brokers.redis_streams.RedisStreamsBroker",
    ZENML_SERVER_STREAMING_HEARTBEAT_SECONDS: "5",
    ZENML_REDIS_BROKER_URL: redisUrl,
  };
}
