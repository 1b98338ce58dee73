/**
 * The two connections by which the runs of one master are read. `CLIENT TRACKING` on the read connection makes Redis name each key that
 * changed since it was read, once, on the wake connection; so the cost does not grow with the runs that nothing happens in.
 * If either connection goes, the other goes with it, and all runs are read anew: tracking ends without a word.
 */
import { Answers } from "./answers.ts";
import { backoffMs } from "./backoff.ts";
import type { Command } from "./command-client.ts";
import { Connection, describeError, encodeCommand, type ReplyHandler } from "./connection.ts";
import { Fallback } from "./fallback.ts";
import { readIdentity } from "./identity.ts";
import { PING } from "./read-commands.ts";
import type { RunReader } from "./reader.ts";
import type { ReaderHost, ReaderSettings } from "./reader-host.ts";
import { ReaderSet } from "./reader-set.ts";
import { type Reply, ReplyError } from "./resp.ts";
import { Sweep } from "./sweep.ts";
import type { Address, Credentials, TlsSettings } from "./target.ts";

export interface PairOptions {
  readonly address: Address;
  readonly credentials: Credentials;
  readonly tls: TlsSettings | null;
  readonly timeoutMs: number;
  readonly settings: ReaderSettings;
  /** Whether the node must say that it is a master; a replica behind Sentinel's back would be read for ever. */
  readonly mustBeMaster: boolean;
  /** Connections that may block, where tracking is refused. */
  readonly maxBlocked: number;
  readonly events: PairEvents;
}

export interface PairEvents {
  up(pair: Pair): void;
  /** Called at each failed try, too. */
  down(pair: Pair, error: string): void;
  connected(role: "read" | "wake", difference: 1 | -1): void;
  reconnects(): void;
  /** How the runs of this node are read; `reason` says why not by tracking. */
  mode(mode: "tracking" | "blocking" | "polling", reason: string): void;
  failed(type: "connection" | "timeout" | "reply"): void;
  readMark(reader: RunReader): object;
  redirected(reader: RunReader, error: ReplyError): void;
}

const INVALIDATED = "__redis__:invalidate";
/** Both connections are asked for a sign of life at least so often, and who the node is. */
const KEEP_ALIVE_MS = 5_000;
/** First reads in flight at once after a connect, so that ten thousand answers do not come as one. */
const FIRST_READS = 512;
/** A server that answers so is about to answer otherwise. */
const TEMPORARY = new Set(["LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "NOAUTH"]);

export class Pair implements ReaderHost {
  readonly address: Address;
  readonly settings: ReaderSettings;
  readonly #options: PairOptions;
  readonly #readers = new ReaderSet();
  readonly #failing = new Set<RunReader>();
  /** Readers whose first read on this connection is still to come. */
  #queue: RunReader[] = [];
  readonly #starters = new Set<RunReader>();
  #read: Connection | null = null;
  #wake: Connection | null = null;
  /** Where tracking is refused. */
  #fallback: Fallback | null = null;
  #isReady = false;
  #isArming = false;
  #isClosed = false;
  #failures = 0;
  #retryAt = 0;
  /** Since when nothing could be read; 0 while reading works. */
  #downSince = performance.now();
  /** Since when Redis answers reads with errors; 0 while it does not. */
  #unreadableSince = 0;
  #pingAt = 0;
  /** A key whose change must be told, until it has been; and by when, once it was changed. */
  #canaryKey: string | null = null;
  #noticeBy = Number.POSITIVE_INFINITY;
  readonly #sweep: Sweep;
  #identity = "";
  #identityAt = 0;
  #failure = "not connected yet";
  #wasUp = false;

  constructor(options: PairOptions) {
    this.#options = options;
    this.address = options.address;
    this.settings = options.settings;
    this.#sweep = new Sweep(options.settings.sweepMs);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  get failure(): string {
    return this.#failure;
  }

  get readers(): readonly RunReader[] {
    return this.#readers.all;
  }

  attach(reader: RunReader): void {
    reader.host = this;
    this.#readers.add(reader);
    if (reader.failingSince !== 0) this.#failing.add(reader);
    if (this.#isReady && (reader.failingSince === 0 || reader.retryAt <= performance.now())) {
      this.#queue.push(reader);
      this.#pump();
    }
  }

  detach(reader: RunReader): void {
    this.#readers.remove(reader);
    this.#failing.delete(reader);
    this.#fallback?.detach(reader);
    if (this.#starters.delete(reader)) this.#pump();
  }

  /** Sends a publish on the read connection and reads it back at once: tracking does not tell a connection of its own writes. */
  publish(key: string, text: string, handler: ReplyHandler, answers: number): void {
    this.#read!.send(text, handler, answers);
    this.#readers.wake(key);
  }

  /** Reads a key that nobody watches, so that its next change must be told, if changes are told here. Resolves to what Redis answered. */
  async readCanary(key: string): Promise<Reply> {
    const [reply = null] = await this.run([["XREVRANGE", key, "+", "-", "COUNT", "1"]]);
    if (this.#wake !== null && !(reply instanceof ReplyError)) this.#canaryKey = key;
    return reply;
  }

  /** Whether a real read was answered with entries: an error that all reads get is an outage of all runs, though the connection is up. */
  noteReading(works: boolean, now: number): void {
    if (!works && this.#unreadableSince === 0) this.#unreadableSince = now;
    if (!works || this.#unreadableSince === 0) return;
    this.#unreadableSince = 0;
    this.#queue = [...this.#readers.all];
    this.#pump();
  }

  /** The key was changed: without a notice of it in time, tracking leads nowhere and is set up anew. */
  noticeDue(now: number): void {
    if (this.#canaryKey !== null) this.#noticeBy = now + this.#options.timeoutMs;
  }

  watches(key: string): boolean {
    return this.#readers.has(key);
  }

  /** Commands that have nothing to do with tracking but should be cheap. Rejects when the connection is lost before all are answered. */
  run(commands: readonly Command[]): Promise<Reply[]> {
    const answers = new Answers(commands.length);
    this.#read!.send(commands.map(encodeCommand).join(""), answers, commands.length);
    return answers.all;
  }

  send(text: string, handler: ReplyHandler | null): void {
    this.#read!.send(text, handler);
  }

  readMark(reader: RunReader): object {
    return this.#options.events.readMark(reader);
  }

  failed(reader: RunReader, error: ReplyError): void {
    this.#failing.add(reader);
    if (error.kind === "MOVED" || error.kind === "ASK") this.#options.events.redirected(reader, error);
    else this.#options.events.failed("reply");
  }

  settled(reader: RunReader): void {
    if (reader.failingSince === 0) {
      this.#failing.delete(reader);
      // Before the canary has seen it: it must not be an outage again.
      if (this.#unreadableSince !== 0) this.noteReading(true, 0);
    }
    this.#fallback?.settled(reader, performance.now());
    if (!this.#starters.delete(reader)) return;
    this.#failures = 0;
    this.#pump();
  }

  /** To be called ten times a second or so: everything periodic, without a timer a run. */
  tick(now: number): void {
    if (this.#isClosed) return;
    this.#read?.check(now);
    this.#wake?.check(now);
    if (now > this.#noticeBy) this.#lose(new Error("a change was not told"));
    if (this.#isReady) {
      this.#keepAlive(now);
      this.#fallback?.tick(now);
      this.#sweep.tick(this.#readers.all, now, (reader) => {
        if (now - reader.readAt >= this.settings.sweepMs / 2) reader.sweep(now);
      });
      this.#retryFailing(now);
    } else if (!this.#isArming && now >= this.#retryAt) {
      this.#arm();
    }
    const since = this.#isReady ? this.#unreadableSince : this.#downSince;
    if (since !== 0 && now - since >= this.#options.timeoutMs) {
      for (const reader of this.#readers.all) reader.tellOutage();
    }
  }

  /** Something says that the node is there: do not wait for the back-off. */
  hurry(): void {
    if (!this.#isReady && !this.#isArming) this.#retryAt = Math.min(this.#retryAt, performance.now() + 100);
  }

  close(): void {
    this.#isClosed = true;
    this.#disconnect();
  }

  // --- connecting ------------------------------------------------------------------------------------------------------------

  async #arm(): Promise<void> {
    this.#isArming = true;
    const { address, credentials, tls, timeoutMs, events } = this.#options;
    if (this.#wasUp || this.#failures > 0) events.reconnects();
    const open = (role: "read" | "wake"): Connection => {
      const name = `penstock-${role}`;
      return new Connection({ address, credentials, tls, timeoutMs, name }, (error) => this.#lost(connections, error));
    };
    const connections = { read: open("read"), wake: open("wake") };
    let refusal: string | null;
    try {
      await Promise.all([connections.read.open(), connections.wake.open()]);
      refusal = await this.#track(connections.read, connections.wake);
      if (refusal !== null) connections.wake.close();
      this.#identity = await readIdentity(connections.read, this.#options.mustBeMaster);
      if (this.#isClosed || !connections.read.isOpen || (refusal === null && !connections.wake.isOpen)) {
        throw new Error("the connection was closed");
      }
    } catch (error) {
      connections.read.close();
      connections.wake.close();
      this.#isArming = false;
      this.#tryFailed(error);
      return;
    }
    this.#isArming = false;
    this.#read = connections.read;
    this.#wake = refusal === null ? connections.wake : null;
    if (refusal !== null) this.#fallback = this.#makeFallback(refusal);
    else events.mode("tracking", "");
    this.#isReady = true;
    this.#wasUp = true;
    this.#downSince = 0;
    this.#pingAt = this.#identityAt = performance.now();
    this.#sweep.start(this.#pingAt);
    events.connected("read", 1);
    if (this.#wake !== null) events.connected("wake", 1);
    this.#starters.clear();
    this.#queue = [...this.#readers.all];
    this.#pump();
    events.up(this);
  }

  /** Null when tracking is on; else the words with which Redis refused. */
  async #track(read: Connection, wake: Connection): Promise<string | null> {
    try {
      const id = String(await wake.call("CLIENT", "ID"));
      await wake.call("SUBSCRIBE", INVALIDATED);
      wake.onMessage = (message) => this.#onMessage(message);
      await read.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "NOLOOP");
      return null;
    } catch (error) {
      if (error instanceof ReplyError && !TEMPORARY.has(error.kind)) return error.message;
      throw error;
    }
  }

  #makeFallback(refusal: string): Fallback {
    const { events, ...options } = this.#options;
    const onMode = (mode: "blocking" | "polling"): void => events.mode(mode, refusal);
    const connected = (difference: 1 | -1): void => events.connected("wake", difference);
    return new Fallback({ ...options, onMode, connected }, this.#readers.all);
  }

  #tryFailed(error: unknown): void {
    if (this.#isClosed) return;
    this.#failure = describeError(error, this.address);
    this.#retryAt = performance.now() + backoffMs(this.#failures++);
    this.#options.events.failed(/no answer within/.test(this.#failure) ? "timeout" : "connection");
    this.#options.events.down(this, this.#failure);
  }

  #lost(connections: { read: Connection; wake: Connection }, error: Error): void {
    if (connections.read !== this.#read || this.#isClosed) {
      connections.read.close();
      connections.wake.close();
      return;
    }
    this.#lose(error);
  }

  #lose(error: Error): void {
    // The silence that ended in a timeout was an outage from its beginning.
    this.#downSince = Math.min(performance.now(), this.#read?.progressAt ?? Number.POSITIVE_INFINITY);
    this.#disconnect();
    this.#tryFailed(error);
  }

  #forgetCanary(): void {
    this.#canaryKey = null;
    this.#noticeBy = Number.POSITIVE_INFINITY;
  }

  #disconnect(): void {
    if (this.#isReady) {
      this.#options.events.connected("read", -1);
      if (this.#wake !== null) this.#options.events.connected("wake", -1);
    }
    this.#fallback?.close();
    this.#fallback = null;
    this.#forgetCanary();
    this.#unreadableSince = 0;
    this.#isReady = false;
    this.#queue = [];
    this.#failing.clear();
    for (const reader of this.#readers.all) reader.reset();
    this.#read?.close();
    this.#wake?.close();
    this.#read = this.#wake = null;
  }

  #pump(): void {
    while (this.#starters.size < FIRST_READS) {
      const reader = this.#queue.pop();
      if (reader === undefined) return;
      if (reader.isClosed || reader.host !== this) continue;
      this.#starters.add(reader);
      reader.begin();
    }
  }

  #onMessage([, channel, keys]: Reply[]): void {
    if (String(channel) !== INVALIDATED) return;
    if (Array.isArray(keys)) {
      for (const item of keys) {
        const key = (item as Buffer).toString("utf8");
        if (key === this.#canaryKey) this.#forgetCanary();
        else this.#readers.wake(key);
      }
    } else {
      // FLUSHALL, FLUSHDB, or a table of keys that overflowed.
      for (const reader of this.#readers.all) reader.wake();
    }
  }

  #retryFailing(now: number): void {
    for (const reader of this.#failing) {
      if (reader.isClosed) this.#failing.delete(reader);
      else {
        if (now - reader.failingSince >= this.#options.timeoutMs) reader.tellOutage();
        if (now >= reader.retryAt) reader.retry();
      }
    }
  }

  /** Asks both connections for a sign of life, and looks whether tracking still leads to the wake connection and the node is the same. */
  #keepAlive(now: number): void {
    if (now - this.#pingAt < Math.min(KEEP_ALIVE_MS, this.#options.timeoutMs / 2)) return;
    this.#pingAt = now;
    const read = this.#read!;
    const wake = this.#wake;
    const broken = (error: Error): void => {
      if (this.#read === read) this.#lose(error);
    };
    if (wake === null) {
      read.send(PING, null);
    } else {
      wake.send(PING, null);
      read.call("CLIENT", "TRACKINGINFO").then(
        (info) => {
          if (Array.isArray(info) && String(info[1]).includes("broken_redirect")) broken(new Error("tracking has lost its way"));
        },
        () => {}, // Before Redis 6.2 there is no such command; a lost connection is told by its close.
      );
    }
    if (now - this.#identityAt < KEEP_ALIVE_MS) return;
    this.#identityAt = now;
    readIdentity(read, this.#options.mustBeMaster).then(
      (identity) => {
        if (this.#read !== read || identity === this.#identity) return;
        this.#identity = identity;
        this.#queue = [...this.#readers.all];
        this.#pump();
      },
      (error: Error) => {
        if (read.isOpen) broken(error);
      },
    );
  }
}
