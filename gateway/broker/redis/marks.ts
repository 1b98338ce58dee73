/**
 * Marks of ended runs, which outlive the streams. A mark may lie on another master than its run: where that one is away, the run is served
 * without it, and a mark that could not be written is written when Redis is back.
 */
import { type EventId, parseEventId } from "../../../protocol/event-id.ts";
import type { Command } from "./command-client.ts";
import { execute } from "./execute.ts";
import type { Keys } from "./keys.ts";
import type { RedisNode } from "./node.ts";
import type { Nodes } from "./nodes.ts";

/** How long a mark is kept. */
export const MARK_SECONDS = 86_400;
/** More that wait for Redis than this are forgotten, oldest first: the end entries themselves are still in the streams. */
const MAX_WAITING = 10_000;
const RETRY_MS = 2_000;
/** A run does not wait longer than this for its mark, and not longer than half the socket timeout. */
const PATIENCE_MS = 1_000;
/** A node that has not answered for a mark is not asked for others for so long: pages of history come one after another. */
const SILENCE_MS = 2_000;

export class Marks {
  readonly #nodes: Nodes;
  readonly #keys: Keys;
  readonly #timeoutMs: number;
  readonly #patienceMs: number;
  readonly #silentUntil = new WeakMap<RedisNode, number>();
  /** The newest wish for each run; null: no mark. */
  readonly #waiting = new Map<string, EventId | null>();
  #retry: NodeJS.Timeout | null = null;

  constructor(nodes: Nodes, keys: Keys, timeoutMs: number) {
    this.#nodes = nodes;
    this.#keys = keys;
    this.#timeoutMs = timeoutMs;
    this.#patienceMs = Math.min(PATIENCE_MS, timeoutMs / 2);
  }

  /** The mark of a run's end, null without one; undefined when it cannot be read soon. Never rejects. */
  async read(runId: string): Promise<EventId | null | undefined> {
    const wish = this.#waiting.get(runId);
    if (wish !== undefined) return wish;
    const node = this.#nodes.nodeFor(this.#keys.ended(runId));
    const now = performance.now();
    if (node !== null && now < (this.#silentUntil.get(node) ?? 0)) return undefined;
    try {
      return await this.get(runId, now + this.#patienceMs);
    } catch {
      // Its node is away, which is told elsewhere.
      if (node !== null) this.#silentUntil.set(node, performance.now() + SILENCE_MS);
      return undefined;
    }
  }

  /** As Redis has it, for who cannot do without. Throws BrokerUnavailableError. */
  async get(runId: string, deadline: number): Promise<EventId | null> {
    const key = this.#keys.ended(runId);
    const [mark] = await execute(this.#nodes, key, [["GET", key]], deadline);
    return mark === undefined || mark === null ? null : parseEventId(String(mark));
  }

  set(runId: string, endedId: EventId): void {
    this.#want(runId, endedId);
  }

  clear(runId: string): void {
    this.#want(runId, null);
  }

  /** Writes a mark now. Throws BrokerUnavailableError. */
  async write(runId: string, endedId: EventId | null, deadline: number): Promise<void> {
    const key = this.#keys.ended(runId);
    const command: Command = endedId === null ? ["DEL", key] : ["SET", key, endedId, "EX", `${MARK_SECONDS}`];
    await execute(this.#nodes, key, [command], deadline);
  }

  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry);
  }

  #want(runId: string, endedId: EventId | null): void {
    this.#waiting.delete(runId);
    this.#waiting.set(runId, endedId);
    if (this.#waiting.size > MAX_WAITING) {
      for (const oldest of this.#waiting.keys()) {
        this.#waiting.delete(oldest);
        break;
      }
    }
    void this.#try(runId, endedId);
  }

  async #try(runId: string, endedId: EventId | null): Promise<void> {
    try {
      await this.write(runId, endedId, performance.now() + this.#timeoutMs);
      if (this.#waiting.get(runId) === endedId) this.#waiting.delete(runId);
    } catch {
      // Redis is away, which is told elsewhere; the wish is kept.
      this.#retry ??= setTimeout(() => this.#tryAll(), RETRY_MS).unref();
    }
  }

  #tryAll(): void {
    this.#retry = null;
    for (const [runId, endedId] of this.#waiting) void this.#try(runId, endedId);
  }
}
