/** All masters of one Redis: keeps the topology up to date, and each watched run with the master of its slot. */
import calculateSlot from "cluster-key-slot";
import type { BrokerHealth, BrokerLog, BrokerMetrics } from "../broker.ts";
import { backoffMs } from "./backoff.ts";
import { findCanaryName } from "./canary.ts";
import type { Keys } from "./keys.ts";
import { type NodeOptions, RedisNode } from "./node.ts";
import type { Pair } from "./pair.ts";
import type { RunReader } from "./reader.ts";
import type { ReaderHost, ReaderSettings } from "./reader-host.ts";
import type { ReplyError } from "./resp.ts";
import { type Address, describeAddress, type RedisTarget } from "./target.ts";
import { type Layout, SLOTS, Topology } from "./topology.ts";

export interface NodesOptions {
  readonly target: RedisTarget;
  readonly timeoutMs: number;
  /** Most connections to one node. */
  readonly maxConnections: number;
  readonly keys: Keys;
  readonly settings: ReaderSettings;
  readonly log: BrokerLog;
  readonly metrics: BrokerMetrics;
  readMark(reader: RunReader): object;
}

type ReadMode = "tracking" | "blocking" | "polling";

const TICK_MS = 100;
/** While something is wrong the topology is asked so often, and else now and then. */
const REFRESH_SOON_MS = 500;
const REFRESH_MS = 30_000;
/** A reader that is sent on more often than this in a row waits before it goes. */
const QUICK_REDIRECTS = 3;

export class Nodes {
  readonly #options: NodesOptions;
  readonly #topology: Topology;
  #nodes = new Map<string, RedisNode>();
  #layout: Layout | null = null;
  /** The master of each slot; one for all where there are no slots. */
  #masters: (RedisNode | null)[] = [];
  /** Readers of slots that no known node has. */
  readonly #homeless = new Set<RunReader>();
  readonly #nowhere: ReaderHost;
  #ticker: NodeJS.Timeout | null = null;
  #refreshing: Promise<void> | null = null;
  #refreshAt = 0;
  #discoveryFailure: string | null = "not connected yet";
  #discoveryFailures = 0;
  #refreshNotBefore = 0;
  #isClosed = false;
  #isTroubled = false;
  /** A Redis that has not answered by then was away when we started: nothing that changes would tell of it. */
  #firstLookAt = Number.POSITIVE_INFINITY;
  readonly #modes = new WeakMap<RedisNode, ReadMode>();
  readonly #connected = { command: 0, read: 0, wake: 0 };

  constructor(options: NodesOptions) {
    this.#options = options;
    this.#topology = new Topology(options.target, options.timeoutMs);
    this.#nowhere = {
      isReady: false,
      settings: options.settings,
      send() {},
      readMark: () => ({}),
      failed() {},
      settled() {},
    };
  }

  /** Asks for the topology once; throws ConnectionError when it cannot be had. */
  async start(): Promise<void> {
    await this.refresh();
    if (this.#layout === null) throw new Error(this.#discoveryFailure ?? "unknown");
  }

  /** Begins to keep connections up, whether or not `start` could reach anything. */
  run(): void {
    this.#ticker = setInterval(() => this.#tick(performance.now()), TICK_MS);
    this.#ticker.unref();
    this.#firstLookAt = performance.now() + this.#options.timeoutMs;
    this.#tick(performance.now());
  }

  get all(): RedisNode[] {
    return [...this.#nodes.values()];
  }

  nodeFor(key: string): RedisNode | null {
    return this.#masterOf(this.#layout?.slots ? calculateSlot(key) : 0);
  }

  /** The node that a MOVED or ASK names; null when it names none. */
  nodeNamed(error: ReplyError, asked: RedisNode): RedisNode | null {
    const target = readRedirection(error, asked.client.address);
    return target === null ? null : this.#ensureNode(target.address);
  }

  /** Learns from a MOVED at once, and asks for the whole soon. */
  learn(error: ReplyError, asked: RedisNode): void {
    const target = readRedirection(error, asked.client.address);
    this.#options.metrics.redisError("moved");
    this.refreshSoon();
    if (target !== null && error.kind === "MOVED" && this.#layout?.slots)
      this.#masters[target.slot] = this.#ensureNode(target.address);
  }

  /** Something is wrong: ask soon, though not more often than the last failures allow. */
  refreshSoon(): void {
    const soon = performance.now() + REFRESH_SOON_MS;
    this.#refreshAt = Math.min(this.#refreshAt, Math.max(soon, this.#refreshNotBefore));
  }

  /** Asks for the topology now; never rejects. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  attach(reader: RunReader): void {
    const node = this.nodeFor(reader.key);
    if (node !== null) {
      node.pair.attach(reader);
    } else {
      if (reader.failingSince === 0) reader.failingSince = performance.now();
      this.#homeless.add(reader);
      this.refreshSoon();
    }
  }

  detach(reader: RunReader): void {
    if (!this.#homeless.delete(reader)) (reader.host as Pair).detach(reader);
  }

  /** Where a reader begins that has no node yet. */
  get nowhere(): ReaderHost {
    return this.#nowhere;
  }

  health(): BrokerHealth {
    const nodes = this.all;
    if (nodes.length === 0) return { readable: false, writable: false, detail: this.#discoveryFailure ?? "not connected yet" };
    const unread = nodes.find((node) => node.readFailure !== null);
    const unwritten = nodes.find((node) => node.writeFailure !== null);
    const parts = [];
    const hasHoles = this.#masters.includes(null);
    if (hasHoles) parts.push("some slots have no master");
    if (unread) parts.push(`cannot read: ${unread.readFailure}`);
    if (unwritten) parts.push(`cannot write: ${unwritten.writeFailure}`);
    if (parts.length === 0) parts.push(`${this.#layout?.kind ?? "standalone"}: ${nodes.map((node) => node.name).join(", ")}`);
    // One master that is away must not take the runs of the others out of service.
    return {
      readable: nodes.some((node) => node.readFailure === null),
      writable: nodes.some((node) => node.writeFailure === null),
      detail: parts.join("; "),
    };
  }

  close(): void {
    this.#isClosed = true;
    if (this.#ticker !== null) clearInterval(this.#ticker);
    for (const node of this.#nodes.values()) node.close();
  }

  // --- topology ----------------------------------------------------------------------------------------------------------------

  #masterOf(slot: number): RedisNode | null {
    return this.#masters[slot] ?? null;
  }

  async #refresh(): Promise<void> {
    this.#refreshAt = performance.now() + REFRESH_MS;
    try {
      const layout = await this.#topology.discover(this.all.map((node) => node.client));
      this.#discoveryFailure = null;
      this.#discoveryFailures = 0;
      this.#refreshNotBefore = 0;
      if (!this.#isClosed) this.#apply(layout);
    } catch (error) {
      this.#discoveryFailure = (error as Error).message;
      this.#refreshNotBefore = performance.now() + backoffMs(this.#discoveryFailures++);
      this.refreshSoon();
    }
  }

  #apply(layout: Layout): void {
    this.#layout = layout;
    const nodes = layout.masters.map((address) => this.#ensureNode(address));
    const { slots } = layout;
    this.#masters = slots === null ? [nodes[0] ?? null] : Array.from({ length: SLOTS }, (_, slot) => nodes[slots[slot]!] ?? null);
    for (const reader of [...this.#homeless]) {
      if (this.nodeFor(reader.key) !== null) {
        this.#homeless.delete(reader);
        this.#place(reader, false);
      }
    }
    for (const node of this.all) {
      const isMaster = nodes.includes(node);
      if (slots !== null || !isMaster) {
        for (const reader of [...node.pair.readers]) {
          const master = this.nodeFor(reader.key);
          if (master === node) reader.asking = false;
          else if (!reader.asking || !isMaster) this.#move(reader, node, false);
        }
      }
      if (isMaster) continue;
      this.#nodes.delete(node.name);
      node.close();
    }
    for (const node of nodes) this.#giveCanary(node);
  }

  #ensureNode(address: Address): RedisNode {
    const name = describeAddress(address);
    const known = this.#nodes.get(name);
    if (known !== undefined) return known;
    const { target, timeoutMs, settings } = this.#options;
    const { credentials, tls } = target;
    const mustBeMaster = this.#topology.isSentinel;
    const node: RedisNode = new RedisNode({
      address,
      credentials,
      tls,
      timeoutMs,
      settings,
      mustBeMaster,
      maxBlocked: this.#maxBlocked,
      events: this.#eventsOf(() => node),
    });
    this.#nodes.set(name, node);
    return node;
  }

  #giveCanary(node: RedisNode): void {
    const { keys } = this.#options;
    if (node.canary.key !== null && this.nodeFor(node.canary.key) === node) return;
    const name = findCanaryName((candidate) => this.nodeFor(keys.canary(candidate)) === node);
    if (name !== null) node.canary.key = keys.canary(name);
  }

  #eventsOf(self: () => RedisNode): NodeOptions["events"] {
    const { metrics, readMark } = this.#options;
    const count = (role: "command" | "read" | "wake", difference: 1 | -1): void => {
      this.#connected[role] += difference;
      metrics.redisConnected(role, this.#connected[role]);
    };
    return {
      up: () => this.#noteHealth(),
      down: () => {
        this.refreshSoon();
        this.#noteHealth();
      },
      connected: count,
      reconnects: () => {
        metrics.redisReconnect("read");
        metrics.redisReconnect("wake");
      },
      mode: (mode, reason) => this.#noteMode(self(), mode, reason),
      failed: (type) => metrics.redisError(type),
      readMark,
      redirected: (reader, error) => this.#redirect(reader, error, self()),
      commandConnected: (difference) => count("command", difference),
      commandReconnects: () => metrics.redisReconnect("command"),
      suspicious: () => this.refreshSoon(),
      // A pair that is not up yet, or no more, tells of it itself.
      changed: () => self().pair.isReady && this.#noteHealth(),
    };
  }

  #redirect(reader: RunReader, error: ReplyError, from: RedisNode): void {
    this.learn(error, from);
    const to = this.nodeNamed(error, from);
    if (to === null || to === from) return;
    this.#move(reader, from, error.kind === "ASK", to);
  }

  #move(reader: RunReader, from: RedisNode, asking: boolean, to: RedisNode | null = null): void {
    from.pair.detach(reader);
    this.#place(reader, asking, to);
  }

  #place(reader: RunReader, asking: boolean, to: RedisNode | null = null): void {
    const node = to ?? this.nodeFor(reader.key);
    const next = reader.moveTo(node?.pair ?? this.#nowhere);
    next.asking = asking;
    if (next.failures <= QUICK_REDIRECTS) next.retryAt = 0;
    if (node === null) this.attach(next);
    else node.pair.attach(next);
  }

  // --- time --------------------------------------------------------------------------------------------------------------------

  #tick(now: number): void {
    for (const node of this.#nodes.values()) {
      node.tick(now);
      if (!node.pair.isReady || !node.client.isConnected) this.refreshSoon();
    }
    for (const reader of this.#homeless) {
      if (now - reader.failingSince >= this.#options.timeoutMs) reader.tellOutage();
    }
    if (now >= this.#refreshAt && this.#refreshing === null) void this.refresh();
    if (now >= this.#firstLookAt) {
      this.#firstLookAt = Number.POSITIVE_INFINITY;
      this.#noteHealth();
    }
  }

  /** One connection is for commands, one for reading what the others wait for. */
  get #maxBlocked(): number {
    return Math.max(this.#options.maxConnections - 2, 1);
  }

  /** The least of the ways in which nodes are read is the one that is shown. */
  #noteMode(node: RedisNode, mode: ReadMode, reason: string): void {
    const { log, metrics } = this.#options;
    if (mode !== "tracking" && (this.#modes.get(node) ?? "tracking") === "tracking") {
      const message = `Redis refuses CLIENT TRACKING; ${this.#maxBlocked} runs of a node get a connection each, others are asked in turn.`;
      log.warn({ node: node.name, reason }, message);
    }
    this.#modes.set(node, mode);
    const modes = this.all.map((each) => this.#modes.get(each));
    metrics.readMode(modes.includes("polling") ? "polling" : modes.includes("blocking") ? "blocking" : "tracking");
  }

  /** One line at the beginning of a trouble, one at its end. */
  #noteHealth(): void {
    const { log } = this.#options;
    const { detail } = this.health();
    const isWhole = this.all.length > 0 && this.all.every((node) => node.readFailure === null) && !this.#masters.includes(null);
    if (isWhole === !this.#isTroubled) return;
    this.#isTroubled = !isWhole;
    if (isWhole) log.info({}, "Redis answers again; reading goes on.");
    else log.warn({ detail }, "Redis does not answer; streams wait, and reading goes on when it is back.");
  }
}

/** `MOVED 3999 127.0.0.1:6381`; an empty host is the one that was asked. */
function readRedirection(error: ReplyError, asked: Address): { slot: number; address: Address } | null {
  const match = /^(?:MOVED|ASK) (\d+) (.*):(\d+)$/.exec(error.message);
  if (match === null || Number(match[1]) >= SLOTS) return null;
  const host = match[2] === "" || match[2] === "?" ? asked.host : match[2]!;
  return { slot: Number(match[1]), address: { host, port: Number(match[3]), path: null, database: 0 } };
}
