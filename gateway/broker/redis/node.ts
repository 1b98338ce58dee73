/** One master: its command connection, its pair of reading connections, and whether they work. */
import { backoffMs } from "./backoff.ts";
import { Canary } from "./canary.ts";
import { type Command, CommandClient } from "./command-client.ts";
import { ConnectionError } from "./connection.ts";
import { withDeadline } from "./deadline.ts";
import { Pair, type PairOptions } from "./pair.ts";
import type { Reply } from "./resp.ts";
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

export class RedisNode {
  readonly name: string;
  readonly pair: Pair;
  readonly client: CommandClient;
  readonly canary: Canary;
  readonly #options: NodeOptions;
  #failures = 0;
  #connectAt = 0;
  #wasConnected = false;
  #isClosed = false;

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
        this.canary.lookSoon();
        events.commandConnected(1);
        this.pair.hurry();
      },
      onLost: () => {
        events.commandConnected(-1);
        events.suspicious();
      },
    });
    const { pair, client, name } = this;
    const { changed, suspicious } = events;
    this.canary = new Canary({ name, pair, client, timeoutMs, changed, suspicious });
  }

  /** For small commands: by the read connection where it is up, which costs a third; else by the command connection. */
  run(commands: readonly Command[], deadlineMs: number): Promise<Reply[]> {
    if (!this.pair.isReady) return this.client.run(commands, deadlineMs);
    const late = (): Error => new ConnectionError(`${this.name}: no answer in time`);
    return withDeadline(this.pair.run(commands), deadlineMs, late);
  }

  /** Why nothing can be read here at present; null when it can. */
  get readFailure(): string | null {
    return this.pair.isReady ? this.canary.readFailure : this.pair.failure;
  }

  /** Why nothing can be written here at present; null when it can. */
  get writeFailure(): string | null {
    return this.client.isConnected ? this.canary.writeFailure : this.client.failure;
  }

  tick(now: number): void {
    if (this.#isClosed) return;
    this.pair.tick(now);
    this.canary.tick(now);
    if (!this.client.isConnected) {
      if (now < this.#connectAt) return;
      this.#connectAt = now + this.#options.timeoutMs + backoffMs(this.#failures++);
      this.client.connect().catch(() => {
        this.#connectAt = performance.now() + backoffMs(this.#failures);
      });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.pair.close();
    this.client.close();
  }
}
