/** Commands on the master of a key, following the cluster's redirections, until one deadline. */
import { BrokerUnavailableError } from "../../errors.ts";
import type { Command } from "./command-client.ts";
import type { RedisNode } from "./node.ts";
import type { Nodes } from "./nodes.ts";
import { type Reply, ReplyError } from "./resp.ts";

const MAX_REDIRECTIONS = 5;
const TRY_AGAIN_MS = 50;

/** Where to send next, after a reply that names another node or says to try again; null when it is an answer. */
export interface Redirection {
  readonly node: RedisNode;
  readonly asking: boolean;
  readonly pauseMs: number;
}

export function redirectionOf(reply: Reply, nodes: Nodes, asked: RedisNode): Redirection | null {
  if (!(reply instanceof ReplyError)) return null;
  if (reply.kind === "TRYAGAIN") return { node: asked, asking: true, pauseMs: TRY_AGAIN_MS };
  if (reply.kind !== "MOVED" && reply.kind !== "ASK") return null;
  nodes.learn(reply, asked);
  const node = nodes.nodeNamed(reply, asked);
  return node && { node, asking: reply.kind === "ASK", pauseMs: node === asked ? TRY_AGAIN_MS : 0 };
}

/**
 * For commands that may be repeated. Resolves to one reply each; throws BrokerUnavailableError when Redis does not answer in time, or
 * answers with an error. What may be large goes by the command connection, so that live reads do not wait behind it.
 */
export async function execute(
  nodes: Nodes,
  key: string,
  commands: readonly Command[],
  deadline: number,
  size: "small" | "large" = "small",
): Promise<Reply[]> {
  let node = nodes.nodeFor(key);
  let asking = false;
  for (let redirections = 0; ; redirections++) {
    if (node === null) {
      nodes.refreshSoon();
      throw new BrokerUnavailableError(`No node of Redis has this run: ${nodes.health().detail}`);
    }
    let replies: Reply[];
    try {
      // ASKING before MULTI holds for all of the transaction.
      const sent: Command[] = asking ? [["ASKING"], ...commands] : [...commands];
      const client = size === "small" ? node : node.client;
      replies = await client.run(sent, deadline - performance.now());
      if (asking) replies.shift();
    } catch (error) {
      nodes.refreshSoon();
      throw new BrokerUnavailableError((error as Error).message);
    }
    const failure = replies.find((reply) => reply instanceof ReplyError) as ReplyError | undefined;
    if (failure === undefined) return replies;
    const redirection = redirectionOf(failure, nodes, node);
    if (redirection === null || redirections === MAX_REDIRECTIONS) throw unavailable(failure, node, nodes);
    await pause(redirection.pauseMs);
    ({ node, asking } = redirection);
  }
}

export function unavailable(failure: ReplyError, node: RedisNode, nodes: Nodes, count = 0, lastId: string | null = null): Error {
  nodes.refreshSoon();
  return new BrokerUnavailableError(`${node.name}: ${failure.message}`, count, lastId);
}

export async function pause(milliseconds: number): Promise<void> {
  if (milliseconds > 0) await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
