/** Pages of what Redis keeps of a run, each with the proof of whether something before or in it is missing. */
import { compareEventIds, type EventId, previousId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { HistoryPage, Position } from "../broker.ts";
import type { Command } from "./command-client.ts";
import { DuplicateFilter, idOf, takeEntries } from "./entries.ts";
import { execute } from "./execute.ts";
import type { Keys } from "./keys.ts";
import type { Marks } from "./marks.ts";
import type { Nodes } from "./nodes.ts";
import { findLoss, type Place } from "./proof.ts";
import { type Reply, ReplyError } from "./resp.ts";
import { readStreamInfo, type StreamInfo, standsOf } from "./stream-info.ts";

/** Entries read at once to find a tail: only their ids are kept. */
const TAIL_PAGE = 512;

/** A position that a page ended at, with what the broker knows of it beyond what a client can send back. */
interface KnownPosition extends Position {
  readonly place: Place;
}

export class History {
  readonly #nodes: Nodes;
  readonly #keys: Keys;
  readonly #marks: Marks;
  readonly #timeoutMs: number;
  readonly #onDropped: (count: number) => void;
  readonly #onReads: (count: number) => void;

  constructor(
    nodes: Nodes,
    keys: Keys,
    marks: Marks,
    timeoutMs: number,
    counts: { duplicateDropped(count: number): void; reads(count: number): void },
  ) {
    this.#nodes = nodes;
    this.#keys = keys;
    this.#marks = marks;
    this.#timeoutMs = timeoutMs;
    this.#onDropped = (count) => counts.duplicateDropped(count);
    this.#onReads = (count) => counts.reads(count);
  }

  /** At most `limit` entries behind the position. Throws BrokerUnavailableError. */
  async readPage(runId: string, position: Position | null, limit: number): Promise<HistoryPage> {
    const deadline = performance.now() + this.#timeoutMs;
    const key = this.#keys.run(runId);
    const from = position === null || position.id === ZERO_ID ? "-" : position.id;
    this.#onReads(1);
    const [replies, mark] = await Promise.all([
      execute(
        this.#nodes,
        key,
        [["MULTI"], ["XRANGE", key, from, "+", "COUNT", `${limit + 1}`], ["XINFO", "STREAM", key], ["EXEC"]],
        deadline,
        "large",
      ),
      this.#marks.read(runId),
    ]);
    const [range, xinfo] = replies.at(-1) as [Reply, Reply];
    if (range instanceof ReplyError) throw range;
    const info = readStreamInfo(xinfo);
    const stands = standsOf(info, mark);
    const { newest, endedId } = stands;
    const rows = range as Reply[];
    const found = position !== null && rows.length > 0 && idOf(rows[0]!) === position.id;
    // Without the entry at the position, the page still holds no more than its limit.
    const read = !found && rows.length > limit ? rows.slice(0, limit) : rows;
    const start = found ? 1 : 0;
    const behind = read.slice(start).map(idOf);
    const more = rows.length > limit;
    const place = placeOf(position);
    const gap = place && findLoss(place, { info, found, behind, more });
    const taken = takeEntries(read, 0, new DuplicateFilter(read.length));
    if (taken.dropped > 0) this.#onDropped(taken.dropped);
    const entries = found ? taken.entries.slice(1) : taken.entries;

    if (info === null) {
      const isSinceLost = position !== null && !position.exact && endedId !== null && compareEventIds(position.id, endedId) < 0;
      const lost = {
        reason: "retention",
        from: place?.id === ZERO_ID ? null : (place?.id ?? null),
        to: null,
        missed: null,
      } as const;
      return { gap: gap !== null || isSinceLost ? lost : null, entries, next: null, atHead: true, ...stands };
    }
    if (gap?.reason === "rollback" && behind.length === 0) {
      const head = await this.#newestKept(key, deadline);
      const next = head ?? (newest === null ? null : nothingKept(newest, info));
      return { gap, entries: [], next, atHead: true, ...stands };
    }
    const lastId = behind.at(-1) ?? null;
    const before = position === null ? addedBeforeFirst(info) : gap === null ? place!.added : null;
    const counted = before === null ? null : before + behind.length;
    const next = nextPosition(position, place, lastId, more, counted, gap !== null, info, newest);
    return { gap, entries, next, atHead: !more, ...stands };
  }

  /** The place before the last `count` entries; null when there are no more than that. Throws BrokerUnavailableError. */
  async findTail(runId: string, count: number): Promise<Position | null> {
    const key = this.#keys.run(runId);
    const deadline = performance.now() + this.#timeoutMs;
    let end: EventId | "+" | null = "+";
    let left = count;
    while (end !== null) {
      this.#onReads(1);
      const limit = Math.min(left + 1, TAIL_PAGE);
      const command: Command = ["XREVRANGE", key, end, "-", "COUNT", `${limit}`];
      const rows: Reply[] = (await execute(this.#nodes, key, [command], deadline, "large"))[0] as Reply[];
      if (left < rows.length) return { id: idOf(rows[left]!), exact: true };
      if (rows.length < limit) return null;
      left -= rows.length;
      end = previousId(idOf(rows.at(-1)!));
    }
    return null;
  }

  async #newestKept(key: string, deadline: number): Promise<Position | null> {
    const [rows] = await execute(this.#nodes, key, [["XREVRANGE", key, "+", "-", "COUNT", "1"]], deadline);
    const row = (rows as Reply[])[0];
    return row === undefined ? null : { id: idOf(row), exact: true };
  }
}

function placeOf(position: Position | null): Place | null {
  if (position === null) return null;
  if ("place" in position) return (position as KnownPosition).place;
  // Before everything, nothing had been added: what was trimmed since can be counted.
  return { id: position.id, exact: position.exact, added: position.id === ZERO_ID ? 0 : null, told: ZERO_ID };
}

function nextPosition(
  position: Position | null,
  place: Place | null,
  lastId: EventId | null,
  more: boolean,
  counted: number | null,
  hasGap: boolean,
  info: StreamInfo,
  newest: EventId | null,
): Position | null {
  const told = info.maxDeletedId ?? ZERO_ID;
  if (lastId !== null) {
    const isAtHead = !more && lastId === newest;
    return known({ id: lastId, exact: true, added: isAtHead ? info.added : counted, told });
  }
  if (newest === null) return position;
  const isAhead = position !== null && compareEventIds(position.id, newest) > 0;
  // A time that lies ahead of the stream stays the place to wait at.
  if (isAhead && !position.exact) return position;
  if (position !== null && position.id === newest && !hasGap) {
    return known({ id: newest, exact: place?.exact ?? position.exact, added: info.added, told });
  }
  return nothingKept(newest, info);
}

/** All that was there is gone: what comes next is counted from here. Who holds the newest id can be told that this stream is another one. */
function nothingKept(newest: EventId, info: StreamInfo): KnownPosition {
  return known({ id: newest, exact: info.added !== null, added: info.added, told: info.maxDeletedId ?? ZERO_ID });
}

/** How many entries were added before the first that is kept; null when it cannot be known. */
function addedBeforeFirst(info: StreamInfo): number | null {
  return info.added !== null && info.maxDeletedId === ZERO_ID ? info.added - info.length : null;
}

function known(place: Place): KnownPosition {
  return { id: place.id, exact: place.exact, place };
}
