/** Marks of ended runs, which outlive the streams. A mark that could not be written is written when Redis is back. */
import type { EventId } from "../../../protocol/event-id.ts";
import type { Command } from "./command-client.ts";
import { execute } from "./execute.ts";
import type { Keys } from "./keys.ts";
import type { Nodes } from "./nodes.ts";

/** How long a mark is kept. */
export const MARK_SECONDS = 86_400;
/** More that wait for Redis than this are forgotten, oldest first: the end entries themselves are still in the streams. */
const MAX_WAITING = 10_000;
const RETRY_MS = 2_000;

export class Marks {
  readonly #nodes: Nodes;
  readonly #keys: Keys;
  readonly #timeoutMs: number;
  /** The newest wish for each run; null: no mark. */
  readonly #waiting = new Map<string, EventId | null>();
  #retry: NodeJS.Timeout | null = null;

  constructor(nodes: Nodes, keys: Keys, timeoutMs: number) {
    this.#nodes = nodes;
    this.#keys = keys;
    this.#timeoutMs = timeoutMs;
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
