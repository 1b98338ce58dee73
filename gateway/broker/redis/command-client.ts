/**
 * The command connection of one node: publishes, pages, marks. ioredis without its queue and its retries: a command is sent once and
 * answered or failed, since a repeated XADD would store an event twice, and a queue would outlive the answer to the client.
 */
import { type RedisOptions as IoredisOptions, Redis } from "ioredis";
import { ConnectionError, describeError } from "./connection.ts";
import { withDeadline } from "./deadline.ts";
import { type Reply, ReplyError } from "./resp.ts";
import type { Address, Credentials, TlsSettings } from "./target.ts";

export type Command = readonly [name: string, ...args: (string | Buffer)[]];

export interface CommandClientOptions {
  readonly address: Address;
  readonly credentials: Credentials;
  readonly tls: TlsSettings | null;
  readonly timeoutMs: number;
  readonly name: string;
  onConnected(): void;
  onLost(error: string): void;
}

interface Batch {
  readonly commands: readonly Command[];
  resolve(replies: Reply[]): void;
  reject(error: Error): void;
}

/** After a failed connect, callers are refused for so long without another try. */
const RETRY_PAUSE_MS = 200;

export class CommandClient {
  readonly #options: CommandClientOptions;
  #redis: Redis | null = null;
  #connecting: Promise<Redis> | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;
  #failure = "not connected yet";
  #closed = false;
  #batches: Batch[] = [];

  constructor(options: CommandClientOptions) {
    this.#options = options;
  }

  get address(): Address {
    return this.#options.address;
  }

  get isConnected(): boolean {
    return this.#redis !== null;
  }

  /** Why the last connection failed or ended; one line without secrets. */
  get failure(): string {
    return this.#failure;
  }

  /** Connects unless it is connected; rejects with ConnectionError. At most one try at a time, and not right after a failed one. */
  connect(): Promise<Redis> {
    if (this.#redis !== null) return Promise.resolve(this.#redis);
    if (this.#closed) return Promise.reject(new ConnectionError("the broker is closed"));
    if (this.#connecting !== null) return this.#connecting;
    if (performance.now() - this.#failedAt < RETRY_PAUSE_MS) return Promise.reject(new ConnectionError(this.#failure));
    this.#connecting = this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  /**
   * Sends commands in one pipeline with all others of this turn of the event loop. Resolves to one reply each, errors of Redis among them;
   * rejects with ConnectionError when there is no connection, or no answer within `deadlineMs`. What was sent may be done all the same.
   */
  async run(commands: readonly Command[], deadlineMs = this.#options.timeoutMs): Promise<Reply[]> {
    const work = async (): Promise<Reply[]> => {
      await this.connect();
      return new Promise((resolve, reject) => {
        if (this.#batches.length === 0) setImmediate(() => this.#flush());
        this.#batches.push({ commands, resolve, reject });
      });
    };
    // A connection that has fallen silent is ended by ioredis' own socketTimeout; a caller in a hurry must not end it for the others.
    return withDeadline(
      work(),
      deadlineMs,
      () => new ConnectionError(describeError(new Error("no answer in time"), this.#options.address)),
    );
  }

  close(): void {
    this.#closed = true;
    this.#redis?.disconnect();
    this.#redis = null;
  }

  async #connect(): Promise<Redis> {
    const redis = new Redis(this.#ioredisOptions());
    let failure: unknown = null;
    redis.on("error", (error: unknown) => {
      failure = error;
    });
    try {
      const late = (): Error => new Error(`no answer within ${this.#options.timeoutMs / 1000} s`);
      await withDeadline(redis.connect(), this.#options.timeoutMs, late);
      if (this.#closed) throw new Error("the broker is closed");
    } catch (error) {
      redis.disconnect();
      this.#failedAt = performance.now();
      this.#failure = describeError(failure ?? error, this.#options.address);
      throw new ConnectionError(this.#failure);
    }
    this.#redis = redis;
    redis.once("close", () => {
      if (this.#redis === redis)
        this.#drop(describeError(failure ?? new Error("the connection was closed"), this.#options.address));
    });
    this.#options.onConnected();
    return redis;
  }

  #drop(failure: string): void {
    const redis = this.#redis;
    if (redis === null) return;
    this.#redis = null;
    this.#failure = failure;
    redis.disconnect();
    if (!this.#closed) this.#options.onLost(failure);
  }

  #flush(): void {
    const batches = this.#batches;
    this.#batches = [];
    if (this.#redis === null) {
      for (const batch of batches) batch.reject(new ConnectionError(this.#failure));
      return;
    }
    const pipeline = this.#redis.pipeline();
    for (const batch of batches) {
      for (const [name, ...args] of batch.commands) pipeline.callBuffer(name, ...args);
    }
    pipeline.exec().then(
      (results) => {
        let at = 0;
        for (const batch of batches) {
          const own = results!.slice(at, at + batch.commands.length);
          at += batch.commands.length;
          const broken = own.find(([error]) => error !== null && error.name !== "ReplyError");
          if (broken) batch.reject(new ConnectionError(describeError(broken[0], this.#options.address)));
          else batch.resolve(own.map(([error, value]) => toReply(error ?? value)));
        }
      },
      (error: unknown) => {
        for (const batch of batches) batch.reject(new ConnectionError(describeError(error, this.#options.address)));
      },
    );
  }

  #ioredisOptions() {
    const { address, credentials, tls, timeoutMs, name } = this.#options;
    const { ca, cert, key, serverName } = tls ?? { ca: null, cert: null, key: null, serverName: null };
    return {
      ...(address.path === null ? { host: address.host, port: address.port } : { path: address.path }),
      ...(credentials.username !== null && { username: credentials.username }),
      ...(credentials.password !== null && { password: credentials.password }),
      ...(tls !== null && {
        tls: {
          ...(ca !== null && { ca }),
          ...(cert !== null && { cert }),
          ...(key !== null && { key }),
          ...(serverName !== null && { servername: serverName }),
        },
      }),
      db: address.database,
      protocol: 2,
      connectionName: name,
      disableClientInfo: true,
      lazyConnect: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      connectTimeout: timeoutMs,
      socketTimeout: timeoutMs,
    } as const satisfies IoredisOptions;
  }
}

/** ioredis' errors, also those inside a transaction's answer, as ours. */
function toReply(value: unknown): Reply {
  if (value instanceof Error) return new ReplyError(value.message);
  if (Array.isArray(value) && value.some((item) => item instanceof Error)) return value.map(toReply);
  return value as Reply;
}
