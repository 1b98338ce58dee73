/** The body of an answer that fills more than one cork: handed out as the socket takes it, never into the engine's endless buffer. */
import type { EngineApp, HttpResponse } from "./engine.ts";
import { MAX_PIECE_BYTES } from "./sse-sink.ts";

/** A client that takes nothing of it for so long is cut. */
const STALL_SECONDS = 30;

export class LongAnswer {
  readonly #app: EngineApp;
  readonly #keepAliveSeconds: number;
  readonly #body: Uint8Array;
  /** Null once the response may not be touched. */
  #res: HttpResponse | null;
  #at = 0;
  readonly #gone: () => void;

  /**
   * Takes the response over; its head must be written. `keepAliveSeconds` hold behind the answer. `gone` is called once, when nothing of
   * the body is needed any more.
   */
  constructor(res: HttpResponse, body: Uint8Array, app: EngineApp, keepAliveSeconds: number, gone: () => void) {
    this.#res = res;
    this.#body = body;
    this.#app = app;
    this.#keepAliveSeconds = keepAliveSeconds;
    this.#gone = gone;
    res.onAborted(() => this.#over());
    res.onWritable(() => {
      // With a handler of ours the engine sends nothing of its own buffer; an empty cork does.
      this.#res?.cork(() => {});
      this.send();
      return true;
    });
  }

  /** Sends as much as the socket takes; the rest follows by itself. */
  send(): void {
    const res = this.#res;
    if (res === null) return;
    this.#app.setResponseTimeout(STALL_SECONDS);
    let took = true;
    // Each piece in a cork of its own: what goes past a cork is a second send, and there the engine once lost bytes.
    for (; took && this.#at < this.#body.length; this.#at += MAX_PIECE_BYTES) {
      const piece = this.#body.subarray(this.#at, this.#at + MAX_PIECE_BYTES);
      res.cork(() => {
        took = res.write(piece);
      });
    }
    if (this.#at >= this.#body.length) {
      this.#over();
      this.#app.setResponseTimeout(this.#keepAliveSeconds);
      res.cork(() => void res.end());
    }
    this.#app.setResponseTimeout(0);
  }

  #over(): void {
    if (this.#res === null) return;
    this.#res = null;
    this.#gone();
  }
}
