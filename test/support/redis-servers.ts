/** Real Redis servers for tests: each on a free loopback port with a directory of its own, gone when the test process ends. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Certificates } from "./certificates.ts";
import { waitFor } from "./wait-for.ts";

const run = promisify(execFile);

export interface RedisServerOptions {
  readonly host?: string;
  readonly port?: number;
  /** More arguments of redis-server, as `["--appendonly", "yes"]`. Nothing is kept over a restart unless they say so. */
  readonly args?: readonly string[];
  /** More arguments, that go with the address; asked again at each start. */
  readonly argsAt?: (host: string, port: number) => readonly string[];
  /** Serves TLS alone on the port. */
  readonly tls?: Certificates;
  /** What `cli` signs in with; the server must know it by `args`. */
  readonly user?: { readonly name: string; readonly password: string };
  /** Runs the server as a Sentinel with these lines of configuration. */
  readonly sentinelConfig?: readonly string[];
  /** A command in front of redis-server, such as `["ip", "netns", "exec", NAME]`; `cli` runs behind it too. */
  readonly prefix?: readonly string[];
}

export interface RedisServer {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** The directory with its data and log. */
  readonly directory: string;
  readonly pid: number;
  /** Runs `redis-cli` against this server; rejects on an error reply. */
  cli(...args: string[]): Promise<string>;
  /** Ends it by SIGTERM; `restart` brings it back. */
  halt(): Promise<void>;
  kill9(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Starts it again (on another address, if one is given) when it was halted or killed; else halts it first. */
  restart(address?: { readonly host?: string; readonly port?: number }): Promise<void>;
  log(): Promise<string>;
  /** Ends it for good and removes its directory. */
  stop(): Promise<void>;
}

/** Starts a standalone server and returns once it answers. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), "penstock-redis-"));
  const server = new Server(directory, options, options.host ?? "127.0.0.1", options.port ?? (await freePort()));
  await server.launch().catch(async (error: unknown) => {
    const log = await server.log();
    await server.stop();
    throw new Error(`redis-server did not start; its log: ${log}`, { cause: error });
  });
  return server;
}

/** A port that nobody listens on, below the range from which outgoing connections take theirs. */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    const probe = createServer();
    const free = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, host, () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

class Server implements RedisServer {
  readonly directory: string;
  host: string;
  port: number;
  readonly #options: RedisServerOptions;
  #child: ChildProcess | null = null;

  constructor(directory: string, options: RedisServerOptions, host: string, port: number) {
    this.directory = directory;
    this.#options = options;
    this.host = host;
    this.port = port;
  }

  get url(): string {
    const { tls, user } = this.#options;
    const login = user ? `${encodeURIComponent(user.name)}:${encodeURIComponent(user.password)}@` : "";
    return `${tls ? "rediss" : "redis"}://${login}${this.host}:${this.port}/0`;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error("this Redis server is not running");
    return this.#child.pid;
  }

  async launch(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#launchOnce();
      } catch (error) {
        // Another test may have taken the port between our look and the server's bind.
        if (attempt === 5 || this.#options.port !== undefined || !String(await this.log()).includes("in use")) throw error;
        this.port = await freePort(this.host);
      }
    }
  }

  async #launchOnce(): Promise<void> {
    const { tls, sentinelConfig, args = [], argsAt = () => [], prefix = [] } = this.#options;
    const listen = tls
      ? ["--port", "0", "--tls-port", `${this.port}`, "--tls-ca-cert-file", tls.ca, "--tls-cert-file", tls.cert].concat([
          "--tls-key-file",
          tls.key,
          "--tls-auth-clients",
          "optional",
          "--tls-replication",
          "yes",
          "--tls-cluster",
          "yes",
        ])
      : ["--port", `${this.port}`];
    const base = ["--bind", this.host, "--dir", this.directory, "--logfile", join(this.directory, "redis.log"), ...listen];
    const data = ["--save", "", "--protected-mode", "no", "--repl-diskless-sync-delay", "0"];
    const command = [...prefix, "redis-server"];
    if (sentinelConfig === undefined) command.push(...base, ...data, ...args, ...argsAt(this.host, this.port));
    else command.push(await this.#writeSentinelConfig(sentinelConfig), "--sentinel");
    const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "ignore", "pipe"] });
    this.#child = child;
    let complaint = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    running.set(child, this.directory);
    let failure: Error | null = null;
    child.once("error", (error) => {
      failure = error;
      running.delete(child);
    });
    child.once("exit", (code, signal) => {
      failure ??= new Error(`redis-server on port ${this.port} ended (${code ?? signal}). ${complaint}`);
      running.delete(child);
    });
    await waitFor(`redis-server on port ${this.port} answers`, async () => {
      if (failure) throw failure;
      return this.cli("PING").then(
        (answer) => answer === "PONG",
        (error) => /LOADING|MASTERDOWN/.test(String(error)),
      );
    });
  }

  /** Sentinel takes its settings by file alone, and writes what it learns into it. */
  async #writeSentinelConfig(lines: readonly string[]): Promise<string> {
    const path = join(this.directory, "sentinel.conf");
    const own = [
      `port ${this.port}`,
      `bind ${this.host}`,
      `dir ${this.directory}`,
      `logfile ${join(this.directory, "redis.log")}`,
    ];
    await writeFile(path, `${[...own, ...lines].join("\n")}\n`);
    return path;
  }

  async cli(...args: string[]): Promise<string> {
    const { tls, user, prefix = [] } = this.#options;
    const options = ["-e", "-h", this.host, "-p", `${this.port}`, "--no-auth-warning"];
    if (tls) options.push("--tls", "--cacert", tls.ca);
    if (user) options.push("--user", user.name, "--pass", user.password);
    const command = [...prefix, "redis-cli", ...options, ...args];
    const { stdout } = await run(command[0]!, command.slice(1), { maxBuffer: 256 * 1024 * 1024, timeout: 20_000 });
    return stdout.replace(/\n$/, "");
  }

  async halt(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async kill9(): Promise<void> {
    await this.#end("SIGKILL");
  }

  pause(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  async restart(address: { readonly host?: string; readonly port?: number } = {}): Promise<void> {
    await this.#end("SIGTERM");
    this.host = address.host ?? this.host;
    this.port = address.port ?? this.port;
    await this.#launchOnce();
  }

  async log(): Promise<string> {
    return readFile(join(this.directory, "redis.log"), "utf8").catch(() => "");
  }

  async stop(): Promise<void> {
    await this.#end("SIGKILL");
    await rm(this.directory, { recursive: true, force: true });
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = once(child, "exit");
    child.kill(signal);
    child.kill("SIGCONT");
    const deadline = setTimeout(() => child.kill("SIGKILL"), 5_000);
    await ended;
    clearTimeout(deadline);
  }
}

/** Servers that run, and their directories. */
const running = new Map<ChildProcess, string>();

function killAll(): void {
  for (const [child, directory] of running) {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
  running.clear();
}

process.once("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    killAll();
    process.kill(process.pid, signal);
  });
}
