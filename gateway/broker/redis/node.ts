/** One master: its command connection, its pair of reading connections, and whether they work. */
import { randomBytes } from "node:crypto";
import { backoffMs } from "./backoff.ts";
import { type Command, CommandClient } from "./command-client.ts";
import { ConnectionError } from "./connection.ts";
import { withDeadline } from "./deadline.ts";
import { Pair, type PairOptions } from "./pair.ts";
import { type Reply, ReplyError } from "./resp.ts";
import { describeAddress } from "./target.ts";

export interface NodeOptions extends Omit<PairOptions, "events"> {
  readonly events: PairOptions["events"] & {
    commandConnected(difference: 1 | -1): void;
    commandReconnects(): void;
    /** The node refuses to write, or is not the one that it was: look for another. */
    suspicious(): void;
    /** Whether it can be read or written has changed. */
    changed(): void;
  };
}

/** How often a write is tried, so that readiness does not wait for a client to find out. */
const CANARY_MS = 5_000;
/** And so often while it does not work. */
const CANARY_FAILING_MS = 1_000;

export class RedisNode {
  readonly name: string;
  readonly pair: Pair;
  readonly client: CommandClient;
  readonly #options: NodeOptions;
  #failures = 0;
  #connectAt = 0;
  #wasConnected = false;
  #isClosed = false;
  #canaryAt = 0;
  #canaryKey: string | null = null;
  /** What Redis answers to a read instead of entries; null while reading works, as far as the connection does. */
  #readFailure: string | null = null;
  /** Null while writing works. */
  #writeFailure: string | null = "not connected yet";

  constructor(options: NodeOptions) {
    this.#options = options;
    const { address, credentials, tls, timeoutMs, events } = options;
    this.name = describeAddress(address);
    this.pair = new Pair(options);
    this.client = new CommandClient({
      address,
      credentials,
      tls,
      timeoutMs,
      name: "penstock-command",
      onConnected: () => {
        if (this.#wasConnected) events.commandReconnects();
        this.#wasConnected = true;
        this.#failures = 0;
        this.#canaryAt = 0;
        events.commandConnected(1);
        this.pair.hurry();
      },
      onLost: (failure) => {
        this.#writeFailure = failure;
        events.commandConnected(-1);
        events.suspicious();
      },
    });
  }

  /** For small commands: by the read connection where it is up, which costs a third; else by the command connection. */
  run(commands: readonly Command[], deadlineMs: number): Promise<Reply[]> {
    if (!this.pair.isReady) return this.client.run(commands, deadlineMs);
    const late = (): Error => new ConnectionError(`${this.name}: no answer in time`);
    return withDeadline(this.pair.run(commands), deadlineMs, late);
  }

  /** Why nothing can be read here at present; null when it can. */
  get readFailure(): string | null {
    return this.pair.isReady ? this.#readFailure : this.pair.failure;
  }

  /** Why nothing can be written here at present; null when it can. */
  get writeFailure(): string | null {
    return this.client.isConnected ? this.#writeFailure : this.client.failure;
  }

  /** A key of this process' own on this node, written now and then to see that writing works and is told. */
  get canaryKey(): string | null {
    return this.#canaryKey;
  }

  set canaryKey(key: string) {
    this.#canaryKey = key;
    this.#canaryAt = 0;
  }

  tick(now: number): void {
    if (this.#isClosed) return;
    this.pair.tick(now);
    if (!this.client.isConnected) {
      if (now < this.#connectAt) return;
      this.#connectAt = now + this.#options.timeoutMs + backoffMs(this.#failures++);
      this.client.connect().catch(() => {
        this.#connectAt = performance.now() + backoffMs(this.#failures);
      });
    } else if (now >= this.#canaryAt) {
      this.#canaryAt = now + CANARY_MS;
      void this.#sendCanary();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.pair.close();
    this.client.close();
  }

  async #sendCanary(): Promise<void> {
    const key = this.#canaryKey;
    if (key === null) return;
    const before = [this.#readFailure, this.#writeFailure];
    try {
      const read = this.pair.isReady ? await this.pair.readCanary(key).catch(() => null) : null;
      this.#readFailure = read instanceof ReplyError ? `${this.name}: ${read.message}` : null;
      // By the other connection: tracking does not tell a connection of its own writes.
      const [added] = await this.client.run([canaryEntry(key), ["EXPIRE", key, "60"]]);
      this.#writeFailure = added instanceof ReplyError ? `${this.name}: ${added.message}` : null;
      if (added instanceof ReplyError) this.#options.events.suspicious();
      else this.pair.noticeDue(performance.now());
    } catch (error) {
      this.#writeFailure = (error as Error).message;
    }
    const isFailing = this.#readFailure !== null || this.#writeFailure !== null;
    this.#canaryAt = performance.now() + (isFailing ? CANARY_FAILING_MS : Math.min(CANARY_MS, this.#options.timeoutMs * 2));
    if (before[0] !== this.#readFailure || before[1] !== this.#writeFailure) this.#options.events.changed();
  }
}

function canaryEntry(key: string): Command {
  return ["XADD", key, "MAXLEN", "1", "*", "p", '{"type":"canary"}'];
}

/** Makes names for canaries until one lies in a slot that `accepts`. */
export function findCanaryName(accepts: (name: string) => boolean): string | null {
  const process = randomBytes(6).toString("hex");
  for (let number = 0; number < 100_000; number++) {
    const name = `${process}-${number}`;
    if (accepts(name)) return name;
  }
  return null;
}
