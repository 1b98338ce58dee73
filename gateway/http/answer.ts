/** What is answered to a request, before it is bytes. */
import { BrokerUnavailableError, PenstockError } from "../errors.ts";

export type Header = readonly [name: string, value: string];

export interface Answer {
  readonly status: number;
  readonly headers: readonly Header[];
  /** Null: no body, and no Content-Length. */
  readonly body: string | Uint8Array | null;
  /** True when the connection cannot be used again. */
  readonly close?: boolean;
}

export function jsonAnswer(status: number, value: unknown, headers: readonly Header[] = []): Answer {
  return rawJsonAnswer(status, JSON.stringify(value), headers);
}

/** `body` is JSON already. */
export function rawJsonAnswer(status: number, body: string | Uint8Array, headers: readonly Header[] = []): Answer {
  return { status, headers: [JSON_TYPE, NO_STORE, ...headers], body };
}

/** Seconds after which a client that was turned away may try again. */
export const RETRY_AFTER_SECONDS = 5;

/**
 * The answer to a request that failed: `{"detail": …}` and nothing of the request. Null for an error that is no client's business;
 * whoever gets null must log the error and answer `internalError`.
 */
export function errorAnswer(error: unknown): Answer | null {
  if (!(error instanceof PenstockError) || error.status === null) return null;
  const { status } = error;
  const headers: Header[] = [];
  if (status === 401) headers.push(["www-authenticate", "Bearer"]);
  if (status === 503) headers.push(["retry-after", String(retryAfterOf(error))]);
  if (error instanceof BrokerUnavailableError && error.count > 0)
    return jsonAnswer(status, { detail: error.message, count: error.count, last_id: error.lastId }, headers);
  return jsonAnswer(status, { detail: error.message }, headers);
}

export function internalError(): Answer {
  return jsonAnswer(500, { detail: "The gateway failed at this request; its log says why." });
}

/** The reason phrase belongs to the status line of HTTP/1.1 (RFC 9112 4); the names are those of RFC 9110 15. */
export function statusLine(status: number): string {
  return `${status} ${REASONS[status] ?? "Error"}`;
}

/** For values from outside. Throws when one would end its line: the engine writes whatever it gets. */
export function checkedHeader(header: Header): Header {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header[0]) || /[^\t\x20-\x7e]/.test(header[1]))
    throw new TypeError(`header field ${JSON.stringify(header[0])} has a name or value that cannot be sent`);
  return header;
}

function retryAfterOf(error: PenstockError): number {
  return "retryAfterSeconds" in error && typeof error.retryAfterSeconds === "number"
    ? error.retryAfterSeconds
    : RETRY_AFTER_SECONDS;
}

const JSON_TYPE: Header = ["content-type", "application/json"];
const NO_STORE: Header = ["cache-control", "no-store"];

const REASONS: Record<number, string> = {
  200: "OK",
  204: "No Content",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
};
