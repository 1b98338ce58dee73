/** What is needed of a request's head, copied: the engine's own object lives only as long as the call that hands it over. */
import type { HttpRequest } from "./engine.ts";

/** Strings hold one character a byte (latin1), as they came. */
export interface RequestHead {
  /** As it came; methods are case-sensitive (RFC 9110 9.1). */
  readonly method: string;
  readonly path: string;
  /** Behind the question mark; "" without one. */
  readonly query: string;
  readonly fields: HeadFields;
}

/** A field's value: null without a line, and all of them, in the order of the lines, where it stands more than once. */
export type FieldValue = string | readonly string[] | null;

/** Those header fields that somebody here asks for. One object with a place for each: a map would cost every connect twice as much. */
export class HeadFields {
  accept: FieldValue = null;
  "access-control-request-method": FieldValue = null;
  authorization: FieldValue = null;
  "content-encoding": FieldValue = null;
  "content-length": FieldValue = null;
  "content-type": FieldValue = null;
  cookie: FieldValue = null;
  host: FieldValue = null;
  "idempotency-key": FieldValue = null;
  "last-event-id": FieldValue = null;
  origin: FieldValue = null;
  "transfer-encoding": FieldValue = null;

  has(name: WantedField): boolean {
    return this[name] !== null;
  }
}

export type WantedField = Exclude<keyof HeadFields, "has">;

export function readHead(request: HttpRequest): RequestHead {
  const fields = new HeadFields();
  fieldsToFill = fields;
  request.forEach(takeField);
  return { method: request.getCaseSensitiveMethod(), path: request.getUrl(), query: request.getQuery() ?? "", fields };
}

/** The line of a field, or null without one. Lines of a repeated one are joined (RFC 9110 5.3; RFC 9113 8.2.3 for cookies). */
export function fieldOf(head: RequestHead, name: WantedField): string | null {
  const value = head.fields[name];
  return value === null || typeof value === "string" ? value : value.join(name === "cookie" ? "; " : ", ");
}

/** True when the head announces a body that is not known to be empty. */
export function announcesBody({ fields }: RequestHead): boolean {
  if (fields["transfer-encoding"] !== null) return true;
  const length = fields["content-length"];
  if (length === null) return false;
  return typeof length === "string" ? !isZero(length) : !length.every(isZero);
}

function isZero(length: string): boolean {
  return /^0*$/.test(length);
}

// Called at once for each line, and never within one another: a closure for each request would cost more than it does.
let fieldsToFill = new HeadFields();

/**
 * By the length first: most lines that browsers send are told apart by it alone. Then by names of ours, for a name of the engine's would
 * have to be looked up before it is a property's.
 */
function takeField(name: string, value: string): void {
  switch (name.length) {
    case 4:
      if (name === "host") add("host", value);
      break;
    case 6:
      if (name === "accept") add("accept", value);
      else if (name === "cookie") add("cookie", value);
      else if (name === "origin") add("origin", value);
      break;
    case 12:
      if (name === "content-type") add("content-type", value);
      break;
    case 13:
      if (name === "authorization") add("authorization", value);
      else if (name === "last-event-id") add("last-event-id", value);
      break;
    case 14:
      if (name === "content-length") add("content-length", value);
      break;
    case 15:
      if (name === "idempotency-key") add("idempotency-key", value);
      break;
    case 16:
      if (name === "content-encoding") add("content-encoding", value);
      break;
    case 17:
      if (name === "transfer-encoding") add("transfer-encoding", value);
      break;
    case 29:
      if (name === "access-control-request-method") add("access-control-request-method", value);
      break;
  }
}

function add(name: WantedField, value: string): void {
  const before = fieldsToFill[name];
  if (before === null) fieldsToFill[name] = trimmed(value);
  else fieldsToFill[name] = typeof before === "string" ? [before, trimmed(value)] : [...before, trimmed(value)];
}

/** Without the white space that RFC 9110 5.5 does not count as part of a value. */
function trimmed(value: string): string {
  return isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(value.length - 1))
    ? value.replace(/^[ \t]+|[ \t]+$/g, "")
    : value;
}

function isBlank(character: number): boolean {
  return character === 0x20 || character === 0x09;
}
