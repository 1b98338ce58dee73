/** Which pages of other origins may call (WHATWG Fetch 3.2). */
import { checkedHeader, type Header } from "./answer.ts";

export interface Cors {
  /** Header fields for every answer to a request with this `Origin` (null without one). */
  headersFor(origin: string | null): readonly Header[];
  /** Further ones for the answer to a preflight; `allow` is the list of methods. */
  preflightFor(origin: string | null, allow: string): readonly Header[];
}

/**
 * `allowedOrigins` are compared whole. A listed origin may send cookies; `*` lets all others call without, and so does `null`, the origin
 * of every sandboxed frame and local file. What goes out is always text of the list, never of the request. Throws when an entry cannot
 * stand in a header field.
 */
export function createCors(allowedOrigins: readonly string[]): Cors {
  const everybody = allowedOrigins.includes("*");
  const listed = new Map<string, readonly Header[]>();
  for (const origin of allowedOrigins) {
    if (origin === "*") continue;
    const allowed = checkedHeader(["access-control-allow-origin", serialized(origin)]);
    listed.set(allowed[1], allowed[1] === "null" ? [allowed, EXPOSED, VARY] : [allowed, CREDENTIALS, EXPOSED, VARY]);
  }
  const others: Header[] = [];
  if (everybody) others.push(["access-control-allow-origin", "*"], EXPOSED);
  if (listed.size > 0) others.push(VARY);
  const isAllowed = (origin: string | null) => origin !== null && (everybody || listed.has(origin));
  return {
    headersFor: (origin) => (origin === null ? undefined : listed.get(origin)) ?? others,
    preflightFor(origin, allow) {
      if (!isAllowed(origin)) return [];
      return [
        ["access-control-allow-methods", allow],
        ["access-control-allow-headers", ALLOWED_HEADERS],
        ["access-control-max-age", "600"],
      ];
    },
  };
}

/** As browsers send it (WHATWG HTML 7.1.1): in lower case, without a port that goes without saying. */
function serialized(origin: string): string {
  const known = /^https?:/i.test(origin) && URL.canParse(origin) && !/\s/.test(origin);
  return known ? new URL(origin).origin : origin.toLowerCase();
}

/** `Cache-Control` is set by some EventSource polyfills. `*` would not cover `Authorization`, nor anything beside credentials. */
const ALLOWED_HEADERS = "Authorization, Cache-Control, Content-Type, Idempotency-Key, Last-Event-ID";
const EXPOSED: Header = ["access-control-expose-headers", "Retry-After"];
const CREDENTIALS: Header = ["access-control-allow-credentials", "true"];
const VARY: Header = ["vary", "Origin"];
