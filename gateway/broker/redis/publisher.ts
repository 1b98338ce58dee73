/**
 * Stores batches: one XADD an entry and one EXPIRE, in one pipeline that is not a transaction, as ZenML does. For a run that is watched
 * here they go by the read connection, with the read behind them: one way to Redis and back for both.
 */
import type { EventId } from "../../../protocol/event-id.ts";
import { BrokerUnavailableError } from "../../errors.ts";
import type { PublishResult } from "../broker.ts";
import { Answers } from "./answers.ts";
import type { Command } from "./command-client.ts";
import { bulk, describeError } from "./connection.ts";
import { withDeadline } from "./deadline.ts";
import { pause, type Redirection, redirectionOf, unavailable } from "./execute.ts";
import type { RedisNode } from "./node.ts";
import type { Nodes } from "./nodes.ts";
import { type Reply, ReplyError } from "./resp.ts";

/** One entry to be stored. */
export interface NewEntry {
  readonly payload: Buffer;
  /** Beside the payload, for an entry of a batch with an Idempotency-Key: the key's short hash and the index in the batch. */
  readonly mark: { readonly key: string; readonly index: number } | null;
}

export interface PublisherSettings {
  readonly timeoutMs: number;
  readonly maxStreamLength: number;
  readonly streamTtlSeconds: number;
}

const MAX_REDIRECTIONS = 5;

export class Publisher {
  readonly #nodes: Nodes;
  readonly #timeoutMs: number;
  readonly #maxLength: string;
  readonly #ttl: string;
  readonly #addTail: string;
  readonly #expireTail: string;

  constructor(nodes: Nodes, settings: PublisherSettings) {
    this.#nodes = nodes;
    this.#timeoutMs = settings.timeoutMs;
    this.#maxLength = `${settings.maxStreamLength}`;
    this.#ttl = `${settings.streamTtlSeconds}`;
    this.#addTail = `${bulk("MAXLEN")}${bulk("~")}${bulk(this.#maxLength)}${bulk("*")}${bulk("p")}`;
    this.#expireTail = bulk(this.#ttl);
  }

  /**
   * Stores entries in order. Throws BrokerUnavailableError, whose `count` says how many of the first are stored for certain; others may
   * be stored all the same.
   */
  async add(key: string, entries: readonly NewEntry[], deadline: number): Promise<PublishResult> {
    const ids: (EventId | null)[] = entries.map(() => null);
    let open: readonly number[] = [...ids.keys()];
    let next: Redirection | null = null;
    for (let redirections = 0; ; redirections++) {
      const node: RedisNode | null = next?.node ?? this.#nodes.nodeFor(key);
      if (node === null) {
        this.#nodes.refreshSoon();
        throw new BrokerUnavailableError(`No node of Redis has this run: ${this.#nodes.health().detail}`);
      }
      const batch = redirections === 0 ? entries : open.map((index) => entries[index]!);
      const isWatched = next === null && node.pair.isReady && node.pair.watches(key);
      const replies: Reply[] = await (isWatched
        ? this.#addByPair(node, key, batch, deadline)
        : this.#addByClient(node, key, batch, next?.asking ?? false, deadline));
      let failure: ReplyError | null = null;
      for (let at = 0; at < open.length; at++) {
        const reply = replies[at]!;
        if (reply instanceof ReplyError) failure ??= reply;
        else ids[open[at]!] = String(reply);
      }
      if (failure === null) return { count: ids.length, lastId: ids.at(-1) ?? null };
      open = open.filter((index) => ids[index] === null);
      next = redirectionOf(failure, this.#nodes, node);
      if (next === null || redirections === MAX_REDIRECTIONS || performance.now() + next.pauseMs >= deadline) {
        const stored = countStored(ids);
        throw unavailable(failure, node, this.#nodes, stored, ids[stored - 1] ?? null);
      }
      await pause(next.pauseMs);
    }
  }

  /** The time by which a publish that begins now must be answered. */
  deadline(): number {
    return performance.now() + this.#timeoutMs;
  }

  #addByPair(node: RedisNode, key: string, entries: readonly NewEntry[], deadline: number): Promise<Reply[]> {
    const bulkKey = bulk(key);
    let text = "";
    for (const { payload, mark } of entries) {
      text += `*${mark === null ? 8 : 12}\r\n$4\r\nXADD\r\n${bulkKey}${this.#addTail}${bulk(payload)}`;
      if (mark !== null) text += `${bulk("k")}${bulk(mark.key)}${bulk("i")}${bulk(`${mark.index}`)}`;
    }
    text += `*3\r\n$6\r\nEXPIRE\r\n${bulkKey}${this.#expireTail}`;
    const answers = new Answers(entries.length + 1);
    node.pair.publish(key, text, answers, entries.length + 1);
    const late = (): Error => new Error("no answer in time");
    return withDeadline(answers.all, deadline - performance.now(), late).catch((error: Error) => {
      const ids = answers.replies.map((reply) => (reply instanceof ReplyError ? null : String(reply)));
      const stored = countStored(ids);
      throw new BrokerUnavailableError(describeError(error, node.client.address), stored, ids[stored - 1] ?? null);
    });
  }

  async #addByClient(
    node: RedisNode,
    key: string,
    entries: readonly NewEntry[],
    asking: boolean,
    deadline: number,
  ): Promise<Reply[]> {
    const commands: Command[] = [];
    for (const { payload, mark } of entries) {
      if (asking) commands.push(["ASKING"]);
      const marks = mark === null ? [] : ["k", mark.key, "i", `${mark.index}`];
      commands.push(["XADD", key, "MAXLEN", "~", this.#maxLength, "*", "p", payload, ...marks]);
    }
    if (asking) commands.push(["ASKING"]);
    commands.push(["EXPIRE", key, this.#ttl]);
    try {
      const replies = await node.client.run(commands, deadline - performance.now());
      return asking ? replies.filter((_, index) => index % 2 === 1) : replies;
    } catch (error) {
      this.#nodes.refreshSoon();
      throw new BrokerUnavailableError((error as Error).message);
    }
  }
}

function countStored(ids: readonly (EventId | null)[]): number {
  const missing = ids.indexOf(null);
  return missing < 0 ? ids.length : missing;
}
