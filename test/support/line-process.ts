/** A foreign program that prints one JSON value a line, such as a client that prints each event it hears. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { endWithUs } from "./children.ts";

const DEFAULT_LIMIT_MS = 15_000;

export class LineProcess<T> {
  readonly values: T[] = [];
  stderr = "";
  readonly #child: ChildProcess;
  readonly #waiters = new Set<() => void>();
  #rest = "";
  #closed = false;

  /** `read` makes a value of a line; null passes it over. */
  constructor(
    command: string,
    args: readonly string[],
    read: (line: string) => T | null = (line) => JSON.parse(line) as T,
    env: NodeJS.ProcessEnv = process.env,
  ) {
    this.#child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.#child.stdout?.setEncoding("utf8");
    this.#child.stderr?.setEncoding("utf8");
    this.#child.stderr?.on("data", (text: string) => {
      this.stderr += text;
    });
    this.#child.stdout?.on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) {
        const value = read(line);
        if (value !== null) this.values.push(value);
      }
      this.#wake();
    });
    endWithUs(this.#child);
    this.#child.once("error", (error) => {
      this.stderr += String(error);
    });
    this.#child.once("close", () => {
      this.#closed = true;
      this.#wake();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Waits until `count` values came, and gives all. */
  async untilCount(count: number, limitMs = DEFAULT_LIMIT_MS): Promise<T[]> {
    await this.#until(`${count} lines`, () => this.values.length >= count, limitMs);
    return this.values;
  }

  async untilValue(what: string, fits: (value: T) => boolean, limitMs = DEFAULT_LIMIT_MS): Promise<T> {
    await this.#until(what, () => this.values.some(fits), limitMs);
    return this.values.find(fits) as T;
  }

  /** Waits until the program has ended by itself; its exit code. */
  async untilExit(limitMs = DEFAULT_LIMIT_MS): Promise<number | null> {
    await this.#until("its end", () => this.#closed, limitMs);
    return this.#child.exitCode;
  }

  async stop(): Promise<void> {
    if (this.#closed) return;
    const closed = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await closed;
  }

  #wake(): void {
    for (const look of [...this.#waiters]) look();
  }

  #until(what: string, holds: () => boolean, limitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (error: Error | null) => {
        clearTimeout(limit);
        this.#waiters.delete(look);
        if (error === null) resolve();
        else reject(error);
      };
      const fail = (why: string) =>
        finish(
          new Error(
            `${what}: ${why}; it printed ${JSON.stringify(this.values.slice(-20))} and said ${this.stderr.slice(-2_000)}`,
          ),
        );
      const limit = setTimeout(() => fail(`not within ${limitMs} ms`), limitMs);
      const look = () => {
        if (holds()) finish(null);
        else if (this.#closed) fail(`the program ended with ${this.#child.exitCode}`);
      };
      this.#waiters.add(look);
      look();
    });
  }
}
