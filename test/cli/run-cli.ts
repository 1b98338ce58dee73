/** Runs `penstock …` as a user does, as a process of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { waitFor } from "../support/wait-for.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export class Cli {
  stdout = "";
  stderr = "";
  readonly child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<number | null>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const clean = Object.entries(process.env).filter(
      ([name]) => !/^(PENSTOCK_|ZENML_|UWS_|VITEST|NODE_OPTIONS|FORCE_COLOR|CI$)/.test(name),
    );
    this.child = spawn(process.execPath, ["gateway/main.ts", ...args], {
      cwd: ROOT,
      env: { ...Object.fromEntries(clean), ...env },
    });
    this.child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    // A command that ends early closes its stdin under us.
    this.child.stdin.on("error", () => {});
    const kill = () => this.child.kill("SIGKILL");
    process.once("exit", kill);
    this.#closed = once(this.child, "close").then(([code]) => {
      process.off("exit", kill);
      return code as number | null;
    });
  }

  /** Closes stdin behind `input` and waits for the exit code. */
  async finish(input = ""): Promise<number | null> {
    this.child.stdin.end(input);
    return this.exitCode();
  }

  async exitCode(limitMs = 15_000): Promise<number | null> {
    const limit = setTimeout(() => this.child.kill("SIGKILL"), limitMs);
    const code = await this.#closed;
    clearTimeout(limit);
    return code;
  }

  lines(): string[] {
    return this.stdout.split("\n").filter((line) => line !== "");
  }

  async untilStdout(part: string): Promise<void> {
    await waitFor(`${JSON.stringify(part)} on stdout, which has ${this.stdout} (stderr: ${this.stderr})`, () =>
      this.stdout.includes(part),
    );
  }

  async untilStderr(part: string): Promise<void> {
    await waitFor(`${JSON.stringify(part)} on stderr`, () => this.stderr.includes(part));
  }

  async stop(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.#closed;
  }
}
