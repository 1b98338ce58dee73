/**
 * Refuses requests of which a proxy in front and the engine may disagree where they end, and those that no route could read in one way
 * only. The engine lets all of these pass (RFC 9112 6.3, 3.2; `docs/architecture.md`, law 6).
 */
import { RequestError } from "../errors.ts";
import type { RequestHead } from "./request-head.ts";

/** What is wrong with the framing of a request, or null. The connection must be closed behind the refusal. */
export function framingFault(head: RequestHead): RequestError | null {
  const hosts = head.fields.get("host") ?? [];
  if (hosts.length !== 1 || !HOST.test(hosts[0]!)) return fault("Host must stand once and name a host");

  const encodings = head.fields.get("transfer-encoding");
  const lengths = head.fields.get("content-length");
  if (encodings !== undefined) {
    if (lengths !== undefined) return fault("Content-Length and Transfer-Encoding exclude each other");
    if (encodings.length !== 1 || encodings[0]!.toLowerCase() !== "chunked") return fault("Transfer-Encoding must be chunked");
  }
  if (lengths !== undefined) {
    if (lengths.some((length) => length !== lengths[0])) return fault("Content-Length must have one value");
    if (!/^[0-9]{1,18}$/.test(lengths[0]!)) return fault("Content-Length must be a number of bytes");
  }
  if (BODILESS.has(head.method) && (encodings !== undefined || (lengths !== undefined && !/^0+$/.test(lengths[0]!))))
    return fault(`${head.method} takes no body`);

  if ((head.fields.get("authorization") ?? []).length > 1) return fault("Authorization must not stand twice");
  return null;
}

function fault(what: string): RequestError {
  return new RequestError("PENSTOCK_BAD_REQUEST", 400, `${what}.`);
}

/** Methods with which a body has no meaning (RFC 9110 9.3.1, 9.3.2, 9.3.7), and is a way to smuggle a request. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** `uri-host [ ":" port ]` by its characters (RFC 3986 3.2.2). */
const HOST = /^[A-Za-z0-9._~!$&'()*+;=:%[\]-]+$/;
