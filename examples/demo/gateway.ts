/** The gateway of the demo: `penstock gateway` with the memory broker, as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../gateway/main.ts", import.meta.url));
const FLAGS = [
  ...["--broker", "memory", "--host", "127.0.0.1", "--port", "0", "--admin-port", "0"],
  ...["--drain-delay-seconds", "0", "--drain-seconds", "1", "--log-format", "json", "--log-level", "info"],
];
const START_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 5_000;

export interface DemoGateway {
  readonly url: string;
  /** Settles when the process has ended, whoever ended it. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Starts it on a free loopback port; pages of `origins` may read it. Throws when it ends before it listens. */
export async function startGateway(origins: readonly string[]): Promise<DemoGateway> {
  const child = spawn(process.execPath, [MAIN, "gateway", ...FLAGS, "--allowed-origins", origins.join(",")], {
    stdio: ["ignore", "pipe", "inherit"],
    // A process group of its own: Ctrl-C goes to the terminal's, and the demo then stops its gateway by itself.
    detached: true,
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const port = await listeningPort(child, ended);
  return { url: `http://127.0.0.1:${port}`, ended, stop: () => stop(child, ended) };
}

async function listeningPort(child: ChildProcess, ended: Promise<void>): Promise<number> {
  const port = new Promise<number>((resolve) => {
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const entry = readLogLine(line);
      if (entry.msg === "listening" && typeof entry.port === "number") resolve(entry.port);
      else if (typeof entry.level === "number" ? entry.level >= 40 : entry.level !== "info") console.error(line);
    });
  });
  const tooLate = delay(START_LIMIT_MS, "late", { ref: false });
  const first = await Promise.race([port, ended, tooLate]);
  if (typeof first === "number") return first;
  child.kill("SIGKILL");
  throw new Error(first === "late" ? "The gateway did not listen in time." : "The gateway ended before it listened (see above).");
}

function readLogLine(line: string): { msg?: unknown; port?: unknown; level?: unknown } {
  try {
    return JSON.parse(line) as { msg?: unknown; port?: unknown; level?: unknown };
  } catch {
    return {};
  }
}

async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  child.kill("SIGTERM");
  const late = await Promise.race([ended, delay(STOP_LIMIT_MS, "late", { ref: false })]);
  if (late === "late") child.kill("SIGKILL");
  await ended;
}
