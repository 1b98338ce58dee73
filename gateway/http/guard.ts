/**
 * Refuses requests of which a proxy in front and the engine may disagree where they end, and those that no route could read in one way
 * only. The engine lets all of these pass (RFC 9112 6.3, 3.2; `docs/architecture.md`, law 6).
 */
import { RequestError } from "../errors.ts";
import type { RequestHead } from "./request-head.ts";

/** What is wrong with the framing of a request, or null. The connection must be closed behind the refusal. */
export function framingFault(head: RequestHead): RequestError | null {
  const { host, authorization } = head.fields;
  if (typeof host !== "string" || !HOST.test(host)) return fault("Host must stand once and name a host");

  const encoding = head.fields["transfer-encoding"];
  const lengths = head.fields["content-length"];
  if (encoding !== null) {
    if (lengths !== null) return fault("Content-Length and Transfer-Encoding exclude each other");
    if (typeof encoding !== "string" || encoding.toLowerCase() !== "chunked") return fault("Transfer-Encoding must be chunked");
  }
  const length = lengths === null || typeof lengths === "string" ? lengths : lengths[0]!;
  if (length !== null) {
    if (lengths !== null && typeof lengths !== "string" && lengths.some((other) => other !== length))
      return fault("Content-Length must have one value");
    if (!/^[0-9]{1,18}$/.test(length)) return fault("Content-Length must be a number of bytes");
  }
  if (BODILESS.has(head.method) && (encoding !== null || (length !== null && !/^0+$/.test(length))))
    return fault(`${head.method} takes no body`);

  if (authorization !== null && typeof authorization !== "string") return fault("Authorization must not stand twice");
  return null;
}

function fault(what: string): RequestError {
  return new RequestError("PENSTOCK_BAD_REQUEST", 400, `${what}.`);
}

/** Methods with which a body has no meaning (RFC 9110 9.3.1, 9.3.2, 9.3.7), and is a way to smuggle a request. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** `uri-host [ ":" port ]` by its characters (RFC 3986 3.2.2). */
const HOST = /^[A-Za-z0-9._~!$&'()*+;=:%[\]-]+$/;
