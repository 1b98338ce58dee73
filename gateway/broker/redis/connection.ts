/** One socket to one Redis node: pipelined commands, answered in order, and dead as soon as it stays silent for too long. */
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { later } from "../../later.ts";
import { ReadBuffer } from "./read-buffer.ts";
import { ProtocolError, type Reply, ReplyError, ReplyReader } from "./resp.ts";
import { type Address, type Credentials, describeAddress, type TlsSettings } from "./target.ts";

/** Takes the answers of the commands that it was sent with, one call each. Long-lived objects are their own handlers: no closure a command. */
export interface ReplyHandler {
  onReply(reply: Reply): void;
  /** The connection is gone; called once for each answer that did not come. */
  onLost(error: Error): void;
}

export interface ConnectionOptions {
  readonly address: Address;
  readonly credentials: Credentials;
  readonly tls: TlsSettings | null;
  /** Longest silence while an answer is due, and longest time to connect and sign in. */
  readonly timeoutMs: number;
  /** Name in CLIENT LIST. */
  readonly name: string;
}

export class ConnectionError extends Error {}

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #onClose: (error: Error) => void;
  readonly #handlers: (ReplyHandler | null)[] = [];
  #head = 0;
  #socket: Socket | null = null;
  /** Commands not yet handed to the socket, a character a byte: one string is one write, whatever it holds. */
  #text = "";
  #flushing = false;
  #closed = false;
  /** Last sign of life, or the moment at which we began to wait for one. */
  #progressAt = 0;
  /** Called for each message, once the connection is subscribed. */
  onMessage: ((message: Reply[]) => void) | null = null;

  /** `onClose` is called once, unless `close` was. */
  constructor(options: ConnectionOptions, onClose: (error: Error) => void) {
    this.#options = options;
    this.#onClose = onClose;
  }

  /** Connects and signs in. Rejects with one line; the connection is closed then, without a call of `onClose`. */
  async open(): Promise<void> {
    const { timeoutMs, credentials, name, address } = this.#options;
    const deadline = setTimeout(() => this.#fail(new ConnectionError(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
    try {
      await this.#connect();
      if (credentials.password !== null) {
        const login = credentials.username === null ? [credentials.password] : [credentials.username, credentials.password];
        await this.call("AUTH", ...login);
      }
      if (address.database !== 0) await this.call("SELECT", `${address.database}`);
      // Only a help to whoever looks at CLIENT LIST: a user who may not do it still gets the connection.
      await this.call("CLIENT", "SETNAME", name).catch((error: unknown) => {
        if (!(error instanceof ReplyError)) throw error;
      });
      if (this.#closed) throw new ConnectionError("closed");
      this.#opened = true;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(deadline);
    }
  }

  #opened = false;

  get isOpen(): boolean {
    return this.#opened && !this.#closed;
  }

  /** Adds `answers` commands to what is sent at the end of this turn of the event loop. `text` is RESP, a character a byte (`bulk`). */
  send(text: string, handler: ReplyHandler | null, answers = 1): void {
    for (let count = 0; count < answers; count++) this.#expect(handler);
    this.#text += text;
    this.#flushLater();
  }

  /** One command, for what is not on a hot path. Rejects with the ReplyError or the connection's. */
  call(...args: readonly string[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.send(encodeCommand(args), {
        onReply: (reply) => (reply instanceof ReplyError ? reject(reply) : resolve(reply)),
        onLost: reject,
      });
    });
  }

  /** Looks whether an answer is overdue. To be called a few times within the timeout; closes the connection if so. */
  check(now: number): void {
    if (this.#closed || this.#pending === 0 || now - this.#progressAt <= this.#options.timeoutMs) return;
    this.#fail(new ConnectionError(`no answer within ${this.#options.timeoutMs / 1000} s`));
  }

  /** When Redis last answered; while nothing is due, when it was last asked. */
  get progressAt(): number {
    return this.#progressAt;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#end(new ConnectionError("closed"));
  }

  get #pending(): number {
    return this.#handlers.length - this.#head;
  }

  #expect(handler: ReplyHandler | null): void {
    if (this.#pending === 0) this.#progressAt = performance.now();
    this.#handlers.push(handler);
    if (this.#closed) setImmediate(() => this.#loseAll(new ConnectionError("the connection is closed")));
  }

  #flushLater(): void {
    if (this.#flushing || this.#closed) return;
    this.#flushing = true;
    later(this.#flush, undefined);
  }

  readonly #flush = (): void => {
    this.#flushing = false;
    const socket = this.#socket;
    if (socket === null || this.#closed) return;
    if (this.#text !== "") socket.write(this.#text, "latin1");
    this.#text = "";
  };

  #connect(): Promise<void> {
    const { address, tls } = this.#options;
    const reader = new ReplyReader((reply) => this.#take(reply));
    return new Promise((resolve, reject) => {
      this.#rejectOpen = reject;
      const endpoint = address.path !== null ? { path: address.path } : { host: address.host, port: address.port };
      const take = (chunk: Buffer): void => {
        this.#progressAt = performance.now();
        try {
          reader.push(chunk);
        } catch (error) {
          if (!(error instanceof ProtocolError)) throw error;
          this.#fail(error);
        }
      };
      // A plain socket reads into memory of ours: through a stream of Node's, each read costs half as much again.
      const socket =
        tls === null
          ? connectPlain({ ...endpoint, onread: new ReadBuffer(take) })
          : connectTls({ ...endpoint, ...tlsOptions(tls, address) }).on("data", take);
      this.#socket = socket;
      socket.setNoDelay(true);
      socket.setKeepAlive(true, 15_000);
      socket.once(tls === null ? "connect" : "secureConnect", () => resolve());
      socket.on("error", (error) => this.#fail(error));
      socket.on("close", () => this.#fail(new ConnectionError("Redis closed the connection")));
      if (this.#closed) this.close();
    });
  }

  #rejectOpen: ((error: Error) => void) | null = null;

  #take(reply: Reply): void {
    if (this.#closed) return;
    if (this.onMessage !== null && Array.isArray(reply) && isMessage(reply)) {
      this.onMessage(reply);
      return;
    }
    if (this.#pending === 0) {
      // Redis says so before it closes: "-ERR max number of clients reached" and its like.
      const message = reply instanceof ReplyError ? reply.message : "an answer to nothing that was asked";
      this.#fail(new ConnectionError(message));
      return;
    }
    const handler = this.#handlers[this.#head]!;
    this.#handlers[this.#head++] = null;
    if (this.#head === this.#handlers.length) {
      this.#handlers.length = 0;
      this.#head = 0;
    } else if (this.#head > 4096) {
      this.#handlers.splice(0, this.#head);
      this.#head = 0;
    }
    handler?.onReply(reply);
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#end(error);
    if (this.#opened) this.#onClose(error);
  }

  #end(error: Error): void {
    this.#socket?.destroy();
    this.#rejectOpen?.(error);
    this.#rejectOpen = null;
    this.#loseAll(error);
  }

  #loseAll(error: Error): void {
    const lost = this.#handlers.slice(this.#head);
    this.#handlers.length = 0;
    this.#head = 0;
    for (const handler of lost) handler?.onLost(error);
  }
}

/** A command as RESP, a character a byte. */
export function encodeCommand(args: readonly (string | Buffer)[]): string {
  let text = `*${args.length}\r\n`;
  for (const arg of args) text += bulk(arg);
  return text;
}

/** An argument of a command as RESP, a character a byte. */
export function bulk(arg: string | Buffer): string {
  const bytes =
    typeof arg === "string" ? (NOT_ASCII.test(arg) ? Buffer.from(arg).toString("latin1") : arg) : arg.toString("latin1");
  return `$${bytes.length}\r\n${bytes}\r\n`;
}

const NOT_ASCII = /[^\0-\x7f]/;

/** What went wrong, in words that hold no secret: replies of AUTH never repeat the password, and arguments are not shown. */
export function describeError(error: unknown, address: Address): string {
  const where = describeAddress(address);
  if (!(error instanceof Error)) return `${where}: ${String(error)}`;
  const { code } = error as NodeJS.ErrnoException;
  if (error instanceof AggregateError && code !== undefined) return `${where}: ${code}`;
  return `${where}: ${error.message || code || error.name}`;
}

function isMessage(reply: Reply[]): boolean {
  const kind = reply[0];
  return Buffer.isBuffer(kind) && kind.length === 7 && kind.toString("latin1") === "message";
}

function tlsOptions(tls: TlsSettings, address: Address): object {
  const name = tls.serverName ?? (address.path === null && !isAddressLiteral(address.host) ? address.host : null);
  return {
    ...(tls.ca !== null && { ca: tls.ca }),
    ...(tls.cert !== null && { cert: tls.cert }),
    ...(tls.key !== null && { key: tls.key }),
    ...(name !== null && { servername: name }),
  };
}

function isAddressLiteral(host: string): boolean {
  return /^[0-9.]+$/.test(host) || host.includes(":");
}
