/**
 * A proxy in front of a Redis server, for what a real one does not do when asked: be old, fall silent on one connection, or move behind
 * its name.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type Reply, ReplyError, ReplyReader } from "../../gateway/broker/redis/resp.ts";

export interface RedisProxyOptions {
  /** The error to answer to a command instead of passing it on; null to pass it on. */
  readonly refuse?: (command: readonly string[]) => string | null;
  /** Makes another answer of the server's. */
  readonly rewrite?: (reply: Reply) => Reply;
}

export interface RedisProxy {
  readonly url: string;
  readonly port: number;
  /** Stops passing bytes on, in both directions: on those open now with this name (CLIENT SETNAME), or on all, new ones too. */
  freeze(name?: string): void;
  thaw(): void;
  /** Ends all connections. */
  cut(): void;
  /** New connections go to this server. */
  retarget(port: number, host?: string): void;
  /** Connections open now. */
  readonly connections: number;
  stop(): Promise<void>;
}

export async function startRedisProxy(port: number, options: RedisProxyOptions = {}): Promise<RedisProxy> {
  const proxy = new Relay(port, options);
  await proxy.listen();
  return proxy;
}

/** As Redis 5 answers: no HELLO, no tracking, and XINFO without what Redis 7 added. */
export const OLD_SERVER: RedisProxyOptions = {
  refuse([name = "", subcommand = ""]) {
    const command = name.toUpperCase();
    if (command === "HELLO") return "ERR unknown command `HELLO`, with args beginning with: ";
    if (command === "CLIENT" && /^TRACKING/i.test(subcommand)) {
      return "ERR Unknown subcommand or wrong number of arguments for 'TRACKING'. Try CLIENT HELP";
    }
    return null;
  },
  rewrite: withoutNewFields,
};

const NEW_FIELDS = new Set(["entries-added", "max-deleted-entry-id", "recorded-first-entry-id"]);

function withoutNewFields(reply: Reply): Reply {
  if (!Array.isArray(reply)) return reply;
  if (!reply.some((item) => String(item) === "last-generated-id")) return reply.map(withoutNewFields);
  return reply.filter((_, index) => !NEW_FIELDS.has(String(reply[index - (index % 2)])));
}

class Relay implements RedisProxy {
  readonly #options: RedisProxyOptions;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #host = "127.0.0.1";
  #target: number;
  #isFrozen = false;

  constructor(port: number, options: RedisProxyOptions) {
    this.#target = port;
    this.#options = options;
    this.#server = createServer((client) => {
      const link = new Link(client, connect(this.#target, this.#host), this.#options, () => this.#links.delete(link));
      this.#links.add(link);
      link.isFrozen = this.#isFrozen;
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  get connections(): number {
    return this.#links.size;
  }

  freeze(name?: string): void {
    this.#isFrozen = name === undefined;
    for (const link of this.#links) if (name === undefined || link.name === name) link.isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const link of this.#links) link.release();
  }

  cut(): void {
    for (const link of this.#links) link.close();
  }

  retarget(port: number, host = "127.0.0.1"): void {
    this.#target = port;
    this.#host = host;
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** One connection: answers stay in the order of the commands, whoever gave them. */
class Link {
  name = "";
  isFrozen = false;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #onClose: () => void;
  /** Our own answers; null where the server's is awaited. */
  readonly #answers: (string | null)[] = [];
  #held: (() => void)[] = [];

  constructor(client: Socket, server: Socket, options: RedisProxyOptions, onClose: () => void) {
    this.#client = client;
    this.#server = server;
    this.#onClose = onClose;
    const commands = new ReplyReader((command) => this.#onCommand((command as Reply[]).map(String), command, options));
    const replies = new ReplyReader((reply) => this.#onReply(options.rewrite?.(reply) ?? reply));
    client.on("data", (chunk) => this.#pass(() => commands.push(chunk)));
    server.on("data", (chunk) => this.#pass(() => replies.push(chunk)));
    for (const socket of [client, server]) {
      socket.on("error", () => this.close());
      socket.on("close", () => this.close());
    }
  }

  release(): void {
    this.isFrozen = false;
    const held = this.#held;
    this.#held = [];
    for (const pass of held) pass();
  }

  close(): void {
    this.#client.destroy();
    this.#server.destroy();
    this.#onClose();
  }

  #pass(pass: () => void): void {
    if (this.isFrozen) this.#held.push(pass);
    else pass();
  }

  #onCommand(words: readonly string[], command: Reply, options: RedisProxyOptions): void {
    if (/^client$/i.test(words[0]!) && /^setname$/i.test(words[1] ?? "")) this.name = words[2] ?? "";
    const refusal = options.refuse?.(words) ?? null;
    this.#answers.push(refusal === null ? null : `-${refusal}\r\n`);
    if (refusal === null) this.#server.write(encode(command));
    else this.#sendOwn();
  }

  #onReply(reply: Reply): void {
    const isMessage = Array.isArray(reply) && String(reply[0]) === "message";
    if (!isMessage) this.#answers.shift();
    this.#client.write(encode(reply));
    this.#sendOwn();
  }

  #sendOwn(): void {
    while (typeof this.#answers[0] === "string") this.#client.write(this.#answers.shift()!);
  }
}

function encode(value: Reply): Buffer {
  if (value === null) return Buffer.from("$-1\r\n");
  if (typeof value === "number") return Buffer.from(`:${value}\r\n`);
  if (typeof value === "string") return Buffer.from(`+${value}\r\n`);
  if (value instanceof ReplyError) return Buffer.from(`-${value.message}\r\n`);
  if (Buffer.isBuffer(value)) return Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from("\r\n")]);
  return Buffer.concat([Buffer.from(`*${value.length}\r\n`), ...value.map(encode)]);
}
