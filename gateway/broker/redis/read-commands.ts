/** The commands of a reader as RESP, made without arrays: there is one for each event. `bulkKey` is the key as `bulk` makes it. */
import type { EventId } from "../../../protocol/event-id.ts";
import { bulk } from "./connection.ts";

/** Entries of one read, the one at the cursor not counted. */
export const PAGE_ENTRIES = 256;

export const MULTI = "*1\r\n$5\r\nMULTI\r\n";
export const EXEC = "*1\r\n$4\r\nEXEC\r\n";
export const ASKING = "*1\r\n$6\r\nASKING\r\n";
export const PING = "*1\r\n$4\r\nPING\r\n";

const XREAD_HEAD = `*6\r\n${bulk("XREAD")}${bulk("COUNT")}${bulk(`${PAGE_ENTRIES + 1}`)}${bulk("STREAMS")}`;

export function xread(bulkKey: string, after: EventId): string {
  return `${XREAD_HEAD}${bulkKey}$${after.length}\r\n${after}\r\n`;
}

export function xrevrange(bulkKey: string, end: EventId | "+", count: number): string {
  return `*6\r\n$9\r\nXREVRANGE\r\n${bulkKey}${bulk(end)}${bulk("-")}${bulk("COUNT")}${bulk(`${count}`)}`;
}

export function xinfo(bulkKey: string): string {
  return `*3\r\n$5\r\nXINFO\r\n$6\r\nSTREAM\r\n${bulkKey}`;
}

export function pttl(bulkKey: string): string {
  return `*2\r\n$4\r\nPTTL\r\n${bulkKey}`;
}
