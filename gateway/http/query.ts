/**
 * The query of a stream or a history page, by the rules of URLSearchParams (WHATWG URL 5): `+` is a space, `%zz` stays as it stands,
 * bytes that are no UTF-8 become U+FFFD. Names are case-sensitive, unknown ones are ignored.
 */
import { parseEventId, ZERO_ID } from "../../protocol/event-id.ts";
import type { Position } from "../broker/broker.ts";
import { RequestError } from "../errors.ts";
import { EVERYTHING, type Filter, makeFilter } from "../stream/filter.ts";
import type { RequestHead } from "./request-head.ts";

/** `query` holds one character a byte. */
export function parseQuery(query: string): URLSearchParams {
  if (query === "") return NO_QUERY;
  return new URLSearchParams(NON_ASCII.test(query) ? Buffer.from(query, "latin1").toString("utf8") : query);
}

/** `kinds`, `step_names`, `correlation_ids`: each may stand several times, and a value is never split at a comma. */
export function filterOf(query: URLSearchParams): Filter {
  if (query.size === 0) return EVERYTHING;
  return makeFilter(valuesOf(query, "kinds"), valuesOf(query, "step_names"), valuesOf(query, "correlation_ids"));
}

/**
 * Where to go on: `Last-Event-ID`, else `since`. An empty one is none, and an empty header gives way to `since`, as a header that a
 * browser sends beside the URL of the first try wins over it. Throws RequestError 400.
 */
export function positionOf(head: RequestHead, query: URLSearchParams): Position | null {
  const header = head.fields["last-event-id"];
  if (header !== null && typeof header !== "string") throw twice("Last-Event-ID");
  const since = single(query, "since");
  if (header !== null && header !== "") {
    const id = eventId("Last-Event-ID", header);
    // 0-0 is before everything, and never an entry.
    return { id, exact: id !== ZERO_ID };
  }
  return since === null ? null : { id: eventId("since", since), exact: false };
}

/** `tail`: begin with the last so many entries. Throws RequestError 400. */
export function tailOf(query: URLSearchParams): number | null {
  const tail = single(query, "tail");
  if (tail === null) return null;
  if (!/^[0-9]{1,9}$/.test(tail)) throw badQuery("tail must be a number of entries, 0 for live ones only");
  return Number(tail);
}

/** `limit`: at most so many events a page. Throws RequestError 400. */
export function limitOf(query: URLSearchParams): number {
  const limit = single(query, "limit");
  if (limit === null) return DEFAULT_PAGE_LIMIT;
  const value = /^[0-9]{1,5}$/.test(limit) ? Number(limit) : 0;
  if (value < 1 || value > MAX_PAGE_LIMIT) throw badQuery(`limit must be a number from 1 to ${MAX_PAGE_LIMIT}`);
  return value;
}

export const DEFAULT_PAGE_LIMIT = 256;
export const MAX_PAGE_LIMIT = 1_000;

/** A value that is blank, or nothing but commas, comes from a form that was not filled in, and filters nothing. */
function valuesOf(query: URLSearchParams, name: string): string[] {
  return query.getAll(name).filter((value) => !/^[\s,]*$/.test(value));
}

function single(query: URLSearchParams, name: string): string | null {
  if (query.size === 0) return null;
  const values = query.getAll(name);
  if (values.length > 1) throw twice(name);
  return values[0] === undefined || values[0] === "" ? null : values[0];
}

function eventId(name: string, text: string): string {
  const id = parseEventId(text);
  if (id === null) throw badQuery(`${name} must be an event id, <milliseconds>-<sequence>`);
  return id;
}

function twice(name: string): RequestError {
  return badQuery(`${name} must not stand twice`);
}

function badQuery(what: string): RequestError {
  return new RequestError("PENSTOCK_BAD_QUERY", 400, `${what}.`);
}

/** To be read only, as all queries are. */
const NO_QUERY = new URLSearchParams();
const NON_ASCII = /[\x80-\xff]/;
