/**
 * Looks by real reads and writes whether a node works: a key of this process' own is read now and then, written to more seldom, and the
 * write must be told on the wake connection. A connection that is up proves none of that.
 */
import { randomBytes } from "node:crypto";
import type { CommandClient } from "./command-client.ts";
import type { Pair } from "./pair.ts";
import { type Reply, ReplyError } from "./resp.ts";

export interface CanaryOptions {
  readonly name: string;
  readonly pair: Pair;
  readonly client: CommandClient;
  readonly timeoutMs: number;
  /** Whether it can be read or written has changed. */
  changed(): void;
  /** The node answers as a master would not. */
  suspicious(): void;
}

const WRITE_MS = 5_000;
/** While something does not work it is tried so often. */
const FAILING_MS = 1_000;
/** Answers that say nothing about the node: the key is another's now, or this user may not use it. */
const NEUTRAL = new Set(["MOVED", "ASK", "TRYAGAIN", "NOPERM"]);

export class Canary {
  readonly #options: CanaryOptions;
  readonly #readMs: number;
  #key: string | null = null;
  #isLooking = false;
  #readAt = 0;
  #writeAt = 0;
  #readFailure: string | null = null;
  #writeFailure: string | null = "not written to yet";

  constructor(options: CanaryOptions) {
    this.#options = options;
    this.#readMs = Math.min(WRITE_MS, options.timeoutMs / 2);
  }

  get key(): string | null {
    return this.#key;
  }

  set key(key: string) {
    this.#key = key;
    this.lookSoon();
  }

  /** What Redis answers instead of entries; null while it can be read. */
  get readFailure(): string | null {
    return this.#readFailure;
  }

  /** Null while it can be written to. */
  get writeFailure(): string | null {
    return this.#writeFailure;
  }

  lookSoon(): void {
    this.#readAt = 0;
    this.#writeAt = 0;
  }

  tick(now: number): void {
    if (this.#isLooking || this.#key === null || now < this.#readAt) return;
    this.#readAt = now + this.#readMs;
    this.#isLooking = true;
    void this.#look(this.#key, now).finally(() => {
      this.#isLooking = false;
    });
  }

  async #look(key: string, now: number): Promise<void> {
    const { pair, client } = this.#options;
    const before = `${this.#readFailure}|${this.#writeFailure}`;
    if (pair.isReady) this.#readFailure = this.#judge(await pair.readCanary(key).catch(() => null));
    if (pair.isReady) pair.noteReading(this.#readFailure === null, performance.now());
    if (client.isConnected && now >= this.#writeAt) await this.#write(key, now);
    if (before !== `${this.#readFailure}|${this.#writeFailure}`) this.#options.changed();
  }

  /** By the command connection: tracking does not tell a connection of its own writes. */
  async #write(key: string, now: number): Promise<void> {
    const { pair, client } = this.#options;
    try {
      const add = ["XADD", key, "MAXLEN", "1", "*", "p", '{"type":"canary"}'] as const;
      const [added = null] = await client.run([add, ["EXPIRE", key, "60"]]);
      this.#writeFailure = this.#judge(added);
      if (added instanceof ReplyError) this.#options.suspicious();
      else pair.noticeDue(performance.now());
    } catch (error) {
      this.#writeFailure = (error as Error).message;
    }
    this.#writeAt = now + (this.#writeFailure === null ? WRITE_MS : FAILING_MS);
  }

  #judge(reply: Reply): string | null {
    if (!(reply instanceof ReplyError) || NEUTRAL.has(reply.kind)) return null;
    return `${this.#options.name}: ${reply.message}`;
  }
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
