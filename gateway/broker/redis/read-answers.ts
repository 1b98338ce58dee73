/** What is in the answers to a reader. */
import { type Reply, ReplyError } from "./resp.ts";

/** The entries in an answer of XREAD to one key. */
export function rowsOf(answer: Reply[] | null): Reply[] {
  const stream = answer?.[0] as Reply[] | undefined;
  return stream === undefined ? [] : (stream[1] as Reply[]);
}

/** The first error inside a transaction's answer; that there is no such key is an answer. */
export function findError(answer: Reply[] | null): ReplyError | null {
  if (answer === null) return null;
  for (const item of answer) if (item instanceof ReplyError && !isNoSuchKey(item)) return item;
  return null;
}

function isNoSuchKey(error: ReplyError): boolean {
  return /no such key/i.test(error.message);
}
