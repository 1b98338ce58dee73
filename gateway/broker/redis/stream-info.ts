/** What XINFO STREAM tells of a stream. */
import { type EventId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { HistoryPage } from "../broker.ts";
import { idOf } from "./entries.ts";
import { ProtocolError, type Reply, ReplyError } from "./resp.ts";

export interface StreamInfo {
  readonly length: number;
  /** Newest id ever given out. */
  readonly lastId: EventId;
  /** Entries ever added; null before Redis 7. */
  readonly added: number | null;
  /** Greatest id that XDEL removed (XTRIM leaves it as it is); null before Redis 7. */
  readonly maxDeletedId: EventId | null;
  readonly firstId: EventId | null;
}

/** Newest id that the stream ever gave out; null when there is none. */
export function newestOf(info: StreamInfo | null): EventId | null {
  return info === null || info.lastId === ZERO_ID ? null : info.lastId;
}

/** What pages and tails alike say of a run: of its stream, and of its end by the mark (`Marks.read`). */
export function standsOf(info: StreamInfo | null, mark: EventId | null | undefined): Stands {
  const deleted = info?.maxDeletedId ?? ZERO_ID;
  return {
    newest: newestOf(info),
    endedId: mark ?? null,
    ...(mark === undefined && { isMarkUnknown: true }),
    ...(deleted !== ZERO_ID && { deletedUpTo: deleted }),
  };
}

type Stands = Pick<HistoryPage, "newest" | "endedId" | "isMarkUnknown" | "deletedUpTo">;

/** null when there is no such key; throws other errors. */
export function readStreamInfo(reply: Reply): StreamInfo | null {
  if (reply instanceof ReplyError) {
    if (/no such key/i.test(reply.message)) return null;
    throw reply;
  }
  if (!Array.isArray(reply)) throw new ProtocolError("XINFO STREAM answered something that is not a stream's description");
  let length = 0;
  let lastId: EventId = ZERO_ID;
  let added: number | null = null;
  let maxDeletedId: EventId | null = null;
  let firstId: EventId | null = null;
  for (let at = 0; at + 1 < reply.length; at += 2) {
    const value = reply[at + 1]!;
    switch (String(reply[at])) {
      case "length":
        length = Number(value);
        break;
      case "last-generated-id":
        lastId = String(value);
        break;
      case "entries-added":
        added = Number(value);
        break;
      case "max-deleted-entry-id":
        maxDeletedId = String(value);
        break;
      case "first-entry":
        firstId = Array.isArray(value) ? idOf(value) : null;
        break;
    }
  }
  return { length, lastId, added, maxDeletedId, firstId };
}
