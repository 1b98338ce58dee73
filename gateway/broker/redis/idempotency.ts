/**
 * A publish with an Idempotency-Key is stored once, whichever gateway its repeats come to. What is known of a key is a hash in Redis:
 * `h` the body's hash, `f` how many attempts failed, `l<n>` who has attempt n, `r` the answer. HSETNX lets one caller have each attempt,
 * so no transaction is needed; an attempt after a failed one first looks for what is stored already.
 */
import { randomBytes } from "node:crypto";
import { previousId } from "../../../protocol/event-id.ts";
import { BrokerUnavailableError, IdempotencyConflictError } from "../../errors.ts";
import type { Idempotency, PublishRequest, PublishResult } from "../broker.ts";
import type { Command } from "./command-client.ts";
import { idOf } from "./entries.ts";
import { execute, pause } from "./execute.ts";
import { hashScopedKey, type Keys, shortHash } from "./keys.ts";
import type { Nodes } from "./nodes.ts";
import type { NewEntry, Publisher } from "./publisher.ts";
import type { Reply } from "./resp.ts";

/** How long an answer is remembered. */
const REMEMBERED_MS = 600_000;
/** How often a repeat looks whether the attempt under way is over. */
const POLL_MS = 50;
/** An attempt's owner is taken for dead after so many socket timeouts, and a repeat waits for it no longer than that. */
const LEASE_TIMEOUTS = 3;
/** A repeat looks through at most so many of the youngest entries for what its first attempt stored. */
const LOOK_BACK = 4_096;
const LOOK_PAGE = 512;

interface Attempt {
  /** Of how many that failed this is the next. */
  readonly failed: number;
}

export class IdempotentPublisher {
  readonly #nodes: Nodes;
  readonly #keys: Keys;
  readonly #publisher: Publisher;
  readonly #timeoutMs: number;
  /** Publishes of this process under way, so that their repeats need not ask Redis. */
  readonly #underWay = new Map<string, { readonly bodyHash: string; readonly result: Promise<PublishResult> }>();

  constructor(nodes: Nodes, keys: Keys, publisher: Publisher, timeoutMs: number) {
    this.#nodes = nodes;
    this.#keys = keys;
    this.#publisher = publisher;
    this.#timeoutMs = timeoutMs;
  }

  /** Throws BrokerUnavailableError, or IdempotencyConflictError when the key came with another body. */
  async publish(request: PublishRequest, idempotency: Idempotency): Promise<PublishResult> {
    const hash = hashScopedKey(idempotency.scope, idempotency.key);
    const key = this.#keys.once(request.runId, hash);
    const other = this.#underWay.get(key);
    if (other !== undefined) {
      if (other.bodyHash !== idempotency.bodyHash) throw new IdempotencyConflictError();
      return other.result;
    }
    const result = this.#publish(request, key, hash, idempotency.bodyHash);
    this.#underWay.set(key, { bodyHash: idempotency.bodyHash, result });
    try {
      return await result;
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #publish(request: PublishRequest, key: string, hash: string, bodyHash: string): Promise<PublishResult> {
    const claimed = await this.#claim(key, bodyHash);
    if (!("failed" in claimed)) return claimed;
    const run = this.#keys.run(request.runId);
    const mark = shortHash(request.runId, hash);
    const entries: NewEntry[] = request.entries.map((payload, index) => ({ payload, mark: { key: mark, index } }));
    const deadline = this.#publisher.deadline();
    let stored = new Map<number, string>();
    try {
      if (claimed.failed > 0) stored = await this.#findStored(run, mark, entries.length, deadline);
      const missing = entries.filter((entry) => !stored.has(entry.mark!.index));
      const added = missing.length === 0 ? null : await this.#publisher.add(run, missing, deadline);
      const lastIndex = entries.length - 1;
      const lastId = stored.get(lastIndex) ?? added?.lastId ?? null;
      const result = { count: entries.length, lastId };
      this.#note(key, ["HSET", key, "r", `${result.count} ${lastId ?? ""}`]);
      return result;
    } catch (error) {
      this.#note(key, ["HSET", key, "f", `${claimed.failed + 1}`]);
      if (!(error instanceof BrokerUnavailableError) || stored.size === 0) throw error;
      // What an earlier attempt stored counts, as far as it reaches from the first without a hole.
      let count = 0;
      let addedCount = error.count;
      let lastId: string | null = null;
      for (; count < entries.length; count++) {
        const id: string | undefined = stored.get(count);
        if (id === undefined && addedCount-- <= 0) break;
        lastId = id ?? error.lastId;
      }
      throw new BrokerUnavailableError(error.message, count, lastId);
    }
  }

  /** The answer of an attempt that is done, or an attempt of our own. Waits for one under way. */
  async #claim(key: string, bodyHash: string): Promise<PublishResult | Attempt> {
    const owner = randomBytes(9).toString("base64url");
    const patience = performance.now() + this.#timeoutMs * LEASE_TIMEOUTS;
    for (;;) {
      const deadline = performance.now() + this.#timeoutMs;
      const [, first, , known] = await execute(
        this.#nodes,
        key,
        [
          ["HSETNX", key, "h", bodyHash],
          ["HSETNX", key, "l0", owner],
          ["PEXPIRE", key, `${REMEMBERED_MS}`],
          ["HMGET", key, "h", "f", "r", "l0"],
        ],
        deadline,
      );
      const [hash, failed, answer, lease] = known as Reply[];
      if (String(hash) !== bodyHash) throw new IdempotencyConflictError();
      if (answer !== null && answer !== undefined) return parseAnswer(answer);
      const attempts = failed === null || failed === undefined ? 0 : Number(String(failed));
      // Ours also when the answer to the same question was lost before.
      if (attempts === 0 && (first === 1 || String(lease) === owner)) return { failed: 0 };
      if (attempts > 0) {
        const [taken] = await execute(this.#nodes, key, [["HSETNX", key, `l${attempts}`, owner]], deadline);
        if (taken === 1) return { failed: attempts };
      }
      if (performance.now() >= patience) {
        // Whoever had the attempt said nothing more in all that time: the next one may begin, here or with the next repeat.
        await execute(this.#nodes, key, [["HSET", key, "f", `${attempts + 1}`]], performance.now() + this.#timeoutMs);
        throw new BrokerUnavailableError("The first publish with this Idempotency-Key has not been answered yet; try again.");
      }
      await pause(POLL_MS);
    }
  }

  /** What an earlier attempt stored: index in the batch to id. */
  async #findStored(run: string, mark: string, count: number, deadline: number): Promise<Map<number, string>> {
    const stored = new Map<number, string>();
    let end: string | null = "+";
    for (let looked = 0; looked < LOOK_BACK && end !== null && stored.size < count; looked += LOOK_PAGE) {
      const [reply] = await execute(this.#nodes, run, [["XREVRANGE", run, end, "-", "COUNT", `${LOOK_PAGE}`]], deadline, "large");
      const rows = reply as Reply[];
      for (const row of rows) {
        const fields = (row as Reply[])[1] as Buffer[];
        const index = indexUnder(fields, mark);
        if (index !== null) stored.set(index, idOf(row));
      }
      end = rows.length < LOOK_PAGE ? null : previousId(idOf(rows.at(-1)!));
    }
    return stored;
  }

  /** A note that only spares a repeat some waiting: lost, the repeat looks into the stream. */
  #note(key: string, command: Command): void {
    execute(this.#nodes, key, [command], performance.now() + this.#timeoutMs).catch(() => {});
  }
}

function indexUnder(fields: readonly Buffer[], mark: string): number | null {
  let key: string | null = null;
  let index: number | null = null;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = String(fields[at]);
    if (name === "k") key = String(fields[at + 1]);
    else if (name === "i") index = Number(String(fields[at + 1]));
  }
  return key === mark ? index : null;
}

function parseAnswer(answer: Reply): PublishResult {
  const [count = "0", lastId = ""] = String(answer).split(" ");
  return { count: Number(count), lastId: lastId === "" ? null : lastId };
}
