/** `GET …/events`: a page of what is kept, as JSON; for scripts, and to fetch again after a gap. */
import type { Broker, Gap, HistoryPage, Position } from "../broker/broker.ts";
import { BrokerUnavailableError } from "../errors.ts";
import { decodeEntry } from "../stream/decode.ts";
import { rawJsonAnswer } from "./answer.ts";
import { limitOf, parseQuery, positionOf } from "./query.ts";
import type { RunCall } from "./run-call.ts";

/**
 * Answers `{"events":[{"id":…,"event":{…}}],"next":…,"gap":…}`. `next` is where to go on (`since=`), null when nothing more is kept at
 * present. A page may hold fewer events than `limit` although more follow: entries that are no events count, and it stops at 4 MiB.
 * Rejects with RequestError 400 or BrokerUnavailableError.
 */
export async function readHistory({ exchange, runId, broker }: RunCall): Promise<void> {
  const query = parseQuery(exchange.head.query);
  const position = positionOf(exchange.head, query);
  const page = await readPages(broker, runId, position, limitOf(query));
  exchange.answer(rawJsonAnswer(200, encodePage(page)));
}

interface Collected {
  readonly gap: Gap | null;
  /** `{"id":…,"event":{…}}` each. */
  readonly events: readonly Buffer[];
  readonly next: string | null;
}

async function readPages(broker: Broker, runId: string, position: Position | null, limit: number): Promise<Collected> {
  const first = await readPage(broker, runId, position, Math.min(limit, ENTRIES_AT_ONCE));
  const events: Buffer[] = [];
  let page = first;
  let bytes = 0;
  let entries = 0;
  for (;;) {
    for (const [place, entry] of page.entries.entries()) {
      const decoded = decodeEntry(entry);
      if (decoded.type !== "event") continue;
      const event = Buffer.concat([Buffer.from(`{"id":"${entry.id}","event":`), decoded.data, CLOSE_BRACE]);
      events.push(event);
      bytes += event.length;
      if (bytes >= MAX_PAGE_BYTES && place < page.entries.length - 1) return { gap: first.gap, events, next: entry.id };
    }
    entries += page.entries.length;
    if (page.atHead) return { gap: first.gap, events, next: null };
    if (entries >= limit || bytes >= MAX_PAGE_BYTES) break;
    const following = await readPage(broker, runId, page.next, Math.min(limit - entries, ENTRIES_AT_ONCE));
    // A gap has its place before a page: the caller meets it when it asks for the next one.
    if (following.gap !== null) break;
    page = following;
  }
  return { gap: first.gap, events, next: page.next === null ? null : page.next.id };
}

async function readPage(broker: Broker, runId: string, position: Position | null, limit: number): Promise<HistoryPage> {
  try {
    return await broker.readPage(runId, position, limit);
  } catch (error) {
    if (!(error instanceof BrokerUnavailableError)) throw error;
    throw new BrokerUnavailableError("Stream broker is currently unavailable; try again.", 0, null, { cause: error });
  }
}

function encodePage({ gap, events, next }: Collected): Buffer {
  const parts: Buffer[] = [Buffer.from('{"events":[')];
  events.forEach((event, index) => {
    if (index > 0) parts.push(COMMA);
    parts.push(event);
  });
  const told = gap === null ? null : { reason: gap.reason, from: gap.from, to: gap.to, missed: gap.missed };
  parts.push(Buffer.from(`],"next":${JSON.stringify(next)},"gap":${JSON.stringify(told)}}`));
  return Buffer.concat(parts);
}

const ENTRIES_AT_ONCE = 256;
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
const CLOSE_BRACE = Buffer.from("}");
const COMMA = Buffer.from(",");
