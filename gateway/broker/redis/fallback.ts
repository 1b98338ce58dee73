/**
 * How runs are read where Redis refuses tracking (an old server, a proxy, an ACL): as many as there are connections to spare get one
 * that blocks until something is added; the others are asked in turn. Both only say when to read: the reading is the reader's own.
 */
import { Connection, encodeCommand, type ReplyHandler } from "./connection.ts";
import type { RunReader } from "./reader.ts";
import { type Reply, ReplyError } from "./resp.ts";
import type { Address, Credentials, TlsSettings } from "./target.ts";

export interface FallbackOptions {
  readonly address: Address;
  readonly credentials: Credentials;
  readonly tls: TlsSettings | null;
  readonly timeoutMs: number;
  /** Connections that may block. */
  readonly maxBlocked: number;
  /** Called when the kind of reading changes. */
  onMode(mode: "blocking" | "polling"): void;
  connected(difference: 1 | -1): void;
}

/** At least so long between two rounds of asking. */
const POLL_PAUSE_MS = 50;
/** Asking in turn takes at most this share of Redis' time, as far as the answers show it. */
const POLL_SHARE = 0.2;
const RECONNECT_MS = 1_000;

export class Fallback {
  readonly #options: FallbackOptions;
  readonly #readers: readonly RunReader[];
  readonly #waiters: Waiter[] = [];
  readonly #waiterOf = new Map<RunReader, Waiter>();
  #mode: "blocking" | "polling" | null = null;
  /** Readers asked in this round whose answer is still to come. */
  readonly #asked = new Set<RunReader>();
  #roundAt = 0;
  #nextRoundAt = 0;

  /** `readers` is the pair's own list, kept up to date by it. */
  constructor(options: FallbackOptions, readers: readonly RunReader[]) {
    this.#options = options;
    this.#readers = readers;
    for (let count = 0; count < options.maxBlocked; count++) this.#waiters.push(new Waiter(options));
  }

  /** A reader has read; whatever waits for news of it must wait behind that. */
  settled(reader: RunReader, now: number): void {
    this.#waiterOf.get(reader)?.wait();
    if (!this.#asked.delete(reader) || this.#asked.size > 0) return;
    this.#nextRoundAt = now + Math.max(POLL_PAUSE_MS, (now - this.#roundAt) * (1 / POLL_SHARE - 1));
  }

  detach(reader: RunReader): void {
    this.#waiterOf.get(reader)?.free();
    this.#waiterOf.delete(reader);
    this.#asked.delete(reader);
  }

  tick(now: number): void {
    for (const waiter of this.#waiters) waiter.check(now);
    if (this.#asked.size > 0 || now < this.#nextRoundAt) return;
    this.#roundAt = now;
    this.#nextRoundAt = now + POLL_PAUSE_MS;
    for (const reader of this.#readers) {
      if (this.#waiterOf.has(reader) || !reader.isStarted) continue;
      const free = this.#waiters.find((waiter) => waiter.reader === null);
      if (free !== undefined) {
        this.#waiterOf.set(reader, free);
        free.take(reader);
      } else if (reader.poll()) {
        this.#asked.add(reader);
      }
    }
    const mode = this.#readers.length > this.#waiters.length ? "polling" : "blocking";
    if (mode === this.#mode) return;
    this.#mode = mode;
    this.#options.onMode(mode);
  }

  close(): void {
    for (const waiter of this.#waiters) waiter.close();
  }
}

/** One connection that blocks for one run. */
class Waiter implements ReplyHandler {
  reader: RunReader | null = null;
  readonly #options: FallbackOptions;
  readonly #blockMs: string;
  #connection: Connection | null = null;
  #isOpening = false;
  #isWaiting = false;
  #openAt = 0;
  #isClosed = false;

  constructor(options: FallbackOptions) {
    this.#options = options;
    this.#blockMs = `${Math.min(1_000, options.timeoutMs / 2)}`;
  }

  take(reader: RunReader): void {
    this.reader = reader;
    this.wait();
  }

  free(): void {
    this.reader = null;
    // What it waits for is another run's news.
    if (this.#isWaiting) this.#drop();
  }

  wait(): void {
    const { reader } = this;
    if (reader === null || this.#isWaiting) return;
    const connection = this.#connection;
    if (connection === null) {
      if (performance.now() >= this.#openAt) void this.#open();
      return;
    }
    this.#isWaiting = true;
    connection.send(encodeCommand(["XREAD", "COUNT", "1", "BLOCK", this.#blockMs, "STREAMS", reader.key, reader.cursor]), this);
  }

  onReply(reply: Reply): void {
    this.#isWaiting = false;
    // With news, the next wait begins when the reader has read them; with an error, at a later tick.
    if (reply === null) this.wait();
    else if (!(reply instanceof ReplyError)) this.reader?.wake();
  }

  onLost(): void {
    this.#isWaiting = false;
  }

  check(now: number): void {
    this.#connection?.check(now);
    if (this.reader !== null && !this.#isWaiting && this.reader.isIdle) this.wait();
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#isWaiting = false;
    if (connection !== null) this.#options.connected(-1);
    connection?.close();
  }

  async #open(): Promise<void> {
    if (this.#isOpening || this.#isClosed) return;
    this.#isOpening = true;
    this.#openAt = performance.now() + RECONNECT_MS;
    const { address, credentials, tls, timeoutMs } = this.#options;
    const connection = new Connection({ address, credentials, tls, timeoutMs, name: "penstock-wait" }, () => {
      if (this.#connection === connection) this.#drop();
    });
    try {
      await connection.open();
      this.#connection = connection;
      this.#options.connected(1);
      if (this.#isClosed) this.#drop();
      else this.wait();
    } catch {
      // The sweep reads this run meanwhile, and the pair tells of a Redis that is away.
    } finally {
      this.#isOpening = false;
    }
  }
}
