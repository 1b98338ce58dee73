/** What is needed of a request's head, copied: the engine's own object lives only as long as the call that hands it over. */
import type { HttpRequest } from "./engine.ts";

/** Strings hold one character a byte (latin1), as they came. */
export interface RequestHead {
  /** As it came; methods are case-sensitive (RFC 9110 9.1). */
  readonly method: string;
  readonly path: string;
  /** Behind the question mark; "" without one. */
  readonly query: string;
  /** The values of those header fields that somebody here asks for, in the order of the lines; absent without one. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
}

export function readHead(request: HttpRequest): RequestHead {
  const fields = new Map<string, string[]>();
  request.forEach((name, value) => {
    if (!WANTED.has(name)) return;
    const values = fields.get(name);
    if (values === undefined) fields.set(name, [trimmed(value)]);
    else values.push(trimmed(value));
  });
  return { method: request.getCaseSensitiveMethod(), path: request.getUrl(), query: request.getQuery() ?? "", fields };
}

/** The line of a field, or null without one. Lines of a repeated one are joined (RFC 9110 5.3; RFC 9113 8.2.3 for cookies). */
export function fieldOf(head: RequestHead, name: WantedField): string | null {
  const values = head.fields.get(name);
  return values === undefined ? null : values.length === 1 ? values[0]! : values.join(name === "cookie" ? "; " : ", ");
}

/** True when the head announces a body that is not known to be empty. */
export function announcesBody(head: RequestHead): boolean {
  return (
    head.fields.has("transfer-encoding") || (head.fields.get("content-length") ?? ["0"]).some((value) => !/^0*$/.test(value))
  );
}

const FIELDS = [
  "accept",
  "access-control-request-method",
  "authorization",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "host",
  "idempotency-key",
  "last-event-id",
  "origin",
  "transfer-encoding",
] as const;

export type WantedField = (typeof FIELDS)[number];

const WANTED: ReadonlySet<string> = new Set(FIELDS);

/** Without the white space that RFC 9110 5.5 does not count as part of a value. */
function trimmed(value: string): string {
  return /^[ \t]|[ \t]$/.test(value) ? value.replace(/^[ \t]+|[ \t]+$/g, "") : value;
}
