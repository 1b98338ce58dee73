/**
 * One event stream on one HTTP response. For streams, this is the only caller of a response of uWebSockets.js, and its rules are
 * clauses of `docs/architecture.md`; each has a test in `sse-sink.test.ts`.
 */
import type { Sink } from "../stream/sink.ts";
import type { Subscription } from "../worker/streams.ts";
import type { EngineApp, HttpResponse } from "./engine.ts";

/** Most bytes of one cork. The engine's buffer is 16 KiB, and what goes past it costs a second send. */
export const MAX_CORK_BYTES = 16_000;
/** Longest piece of a batch: what is left of a cork beside the frames of its two chunks. */
export const MAX_PIECE_BYTES = MAX_CORK_BYTES - 32;

/**
 * The engine ends a chunk's CRLF only with the next write; without this line behind a batch, Python's `requests` hands out each event
 * when the next one comes.
 */
const TRAILER = Buffer.from(":\n");

/** For what remains of an ended stream in the engine's own buffer, in seconds: the longest that its timer wheel holds. */
const FAREWELL_SECONDS = 236;

export interface SinkContext {
  readonly app: EngineApp;
  /** An ended stream whose last bytes the client does not take for so long is cut. */
  readonly stallMs: number;
}

export class SseSink implements Sink {
  readonly #context: SinkContext;
  /** Null once the response may not be touched: aborted, cut or ended. */
  #res: HttpResponse | null;
  #subscription: Subscription | null = null;
  #full = false;
  #farewell: Farewell | null = null;

  /** Must be made outside the engine's own callbacks. Takes the response over from whoever had its abort handler. */
  constructor(res: HttpResponse, context: SinkContext) {
    this.#context = context;
    this.#res = res;
    res.onAborted(() => this.#aborted());
    res.onWritable(() => this.#writable());
  }

  /** Sends the head (status 200) and the first bytes in one cork. */
  begin(headers: readonly (readonly [string, string])[], opening: Uint8Array): void {
    const res = this.#res;
    if (res === null) return;
    corkResponse = res;
    corkHeaders = headers;
    corkFrames = opening;
    res.cork(writeOpening);
  }

  /** Who hears of a drained socket and of a client that left. */
  attach(subscription: Subscription): void {
    this.#subscription = subscription;
  }

  write(frames: Uint8Array): boolean {
    const res = this.#res;
    if (res === null || this.#farewell !== null) return false;
    this.#full = !writeCorked(res, frames);
    return !this.#full;
  }

  end(last: Uint8Array | null, stallMs: number = this.#context.stallMs): void {
    const res = this.#res;
    if (res === null || this.#farewell !== null) return;
    if (this.#full) {
      // Ended now, the engine would time the drain by its own clock, and that is short for a reader that reads slowly.
      this.#farewell = { last, timer: setTimeout(() => this.abort(), stallMs) };
      return;
    }
    this.#endNow(res, last);
  }

  abort(): void {
    const res = this.#res;
    if (res === null) return;
    this.#release();
    res.close();
  }

  #endNow(res: HttpResponse, last: Uint8Array | null): void {
    this.#release();
    let rest = last;
    if (rest !== null && rest.length > MAX_PIECE_BYTES) {
      writeCorked(res, rest);
      rest = null;
    }
    const { app } = this.#context;
    app.setResponseTimeout(FAREWELL_SECONDS);
    // Never `end(last, true)`: behind chunks it writes a header line into the body.
    res.cork(() => {
      if (rest === null) res.end();
      else res.end(rest);
    });
    app.setResponseTimeout(0);
  }

  #aborted(): void {
    if (this.#res === null) return;
    const subscription = this.#farewell === null ? this.#subscription : null;
    this.#release();
    subscription?.closed();
  }

  /** The kernel has taken or sent bytes. */
  #writable(): boolean {
    const res = this.#res;
    if (res === null) return true;
    // With a handler of ours the engine sends nothing of its own buffer; an empty cork does.
    res.cork(nothing);
    if (!this.#full) return true;
    // Whether all of it went the engine tells only at a write. Without asking, each refill could add more than the last drain took.
    if (!writeCorked(res, null)) {
      if (this.#farewell !== null) this.#farewell.timer.refresh();
      else this.#subscription?.progressed?.();
      return true;
    }
    this.#full = false;
    if (this.#farewell !== null) this.#endNow(res, this.#farewell.last);
    else this.#subscription?.drained();
    return true;
  }

  #release(): void {
    this.#res = null;
    this.#subscription = null;
    if (this.#farewell !== null) clearTimeout(this.#farewell.timer);
  }
}

/** An end that waits for a full socket. */
interface Farewell {
  readonly last: Uint8Array | null;
  readonly timer: NodeJS.Timeout;
}

function nothing(): void {}

/** Writes a batch and the trailer behind it, or the trailer alone. False when the engine had to keep bytes back. */
function writeCorked(res: HttpResponse, frames: Uint8Array | null): boolean {
  corkResponse = res;
  if (frames === null || frames.length <= MAX_PIECE_BYTES) {
    corkFrames = frames;
    res.cork(writeBatch);
    return corkTook;
  }
  let at = 0;
  for (; frames.length - at > MAX_PIECE_BYTES; at += MAX_PIECE_BYTES) {
    corkFrames = frames.subarray(at, at + MAX_PIECE_BYTES);
    res.cork(writePiece);
  }
  corkFrames = frames.subarray(at);
  res.cork(writeBatch);
  return corkTook;
}

// Corks run at once and never within one another, so their callbacks can be shared: a closure for each write would cost about a tenth
// of the write.
let corkResponse: HttpResponse;
let corkHeaders: readonly (readonly [string, string])[];
let corkFrames: Uint8Array | null;
let corkTook: boolean;

function writeOpening(): void {
  for (const header of corkHeaders) corkResponse.writeHeader(header[0], header[1]);
  corkResponse.write(corkFrames!);
  corkResponse.write(TRAILER);
}

function writePiece(): void {
  corkResponse.write(corkFrames!);
}

function writeBatch(): void {
  corkTook = corkFrames === null || corkResponse.write(corkFrames);
  corkTook = corkResponse.write(TRAILER) && corkTook;
}
