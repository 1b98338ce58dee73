/** `GET …/events/stream`: a run as Server-Sent Events (WHATWG HTML 9.2). */
import { PenstockError, RequestError } from "../errors.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { openingLines } from "../stream/frame.ts";
import type { OpenRequest, Slot, Streams } from "../worker/streams.ts";
import { accepts } from "./accept.ts";
import type { Header } from "./answer.ts";
import type { Cors } from "./cors.ts";
import { filterOf, parseQuery, positionOf, tailOf } from "./query.ts";
import { fieldOf } from "./request-head.ts";
import type { RunCall } from "./run-call.ts";
import { type SinkContext, SseSink } from "./sse-sink.ts";

type Wish = Pick<OpenRequest, "position" | "tail" | "filter">;

export interface StreamServices {
  readonly streams: Streams;
  readonly cors: Cors;
  readonly sinks: SinkContext;
  isDraining(): boolean;
}

/** Throws RequestError 406, 400 or 503. HEAD gets the head alone, and makes no subscriber. */
export function openStream(call: RunCall, services: StreamServices): void | Promise<void> {
  const { exchange, runId } = call;
  const { head } = exchange;
  if (!accepts(fieldOf(head, "accept"), "text/event-stream"))
    throw new RequestError("PENSTOCK_NOT_ACCEPTABLE", 406, "This resource is text/event-stream, which Accept refuses.");
  const query = parseQuery(head.query);
  const position = positionOf(head, query);
  const tail = tailOf(query);
  const filter = filterOf(query);
  if (head.method === "HEAD") {
    exchange.answer({ status: 200, headers: STREAM_HEADERS, body: null });
    return;
  }
  // A page that reconnects asks with the same URL: where it stopped counts more than where it once began.
  const wish = { position, tail: position === null ? tail : null, filter };
  const slot = services.streams.claim(runId);
  if (slot instanceof Promise) return slot.then((granted) => begin(call, granted, wish, services));
  begin(call, slot, wish, services);
}

function begin({ exchange, identity }: RunCall, slot: Slot, wish: Wish, services: StreamServices): void {
  const { head } = exchange;
  const res = exchange.takeOver();
  if (res === null) {
    slot.release();
    return;
  }
  const sink = new SseSink(res, services.sinks);
  sink.begin(headersOf(fieldOf(head, "origin"), services), openingLines(1_000 + Math.floor(Math.random() * 1_000)));
  try {
    sink.attach(slot.open({ ...wish, expiresAt: identity.expiresAt, sink }));
  } catch (error) {
    sink.abort();
    throw error;
  }
}

/** Counts a stream that was not opened; the run table counts those that it has no place for. */
export function countReject(error: unknown, metrics: Metrics): void {
  const status = error instanceof PenstockError ? error.status : null;
  if (status === 401 || status === 403) metrics.inc("penstock_connections_rejected_total", "unauthorized");
  else if (status === 406) metrics.inc("penstock_connections_rejected_total", "not_acceptable");
  else if (status === 400 || status === 422) metrics.inc("penstock_connections_rejected_total", "bad_request");
}

function headersOf(origin: string | null, services: StreamServices): readonly Header[] {
  const cors = services.cors.headersFor(origin);
  if (cors.length === 0 && !services.isDraining()) return STREAM_HEADERS;
  // The flag with which the engine would close behind the body corrupts a chunked one; this field makes the client do it.
  return [...STREAM_HEADERS, ...cors, ...(services.isDraining() ? [CLOSE] : [])];
}

const STREAM_HEADERS: readonly Header[] = [
  ["content-type", "text/event-stream; charset=utf-8"],
  ["cache-control", "no-cache, no-store, no-transform"],
  // nginx and those like it would hold events back in their buffer.
  ["x-accel-buffering", "no"],
];
const CLOSE: Header = ["connection", "close"];
