/**
 * Many readers at the cost of a socket each: they come back with their last id when their stream ends or is cut, and count what comes.
 * What they are served is judged elsewhere; here it is their number that matters.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

export interface LightReadersOptions {
  readonly port: number;
  /** Path of the stream that reader `n` reads; on another one than before it begins anew. */
  readonly pathOf: (n: number) => string;
  /** Most milliseconds, by chance, before a reader comes back. */
  readonly backWithinMs?: number;
}

/** The last chunk of a body (RFC 9112 section 7.1). */
const END_OF_BODY = "0\r\n\r\n";
const OPENED_AT_ONCE = 200;

export class LightReaders {
  readonly #options: LightReadersOptions;
  readonly #sockets: (Socket | null)[] = [];
  readonly #places: { readonly path: string; lastId: string | null }[] = [];
  #over = false;
  /** Streams that were opened. */
  opened = 0;
  /** Answers of another status than 200. */
  refused = 0;
  /** Events, by their ids. */
  events = 0;
  /** Streams open now. */
  streaming = 0;

  constructor(options: LightReadersOptions) {
    this.#options = options;
  }

  /** Opens so many more, some at a time, and resolves when all stream. */
  async open(count: number, limitMs = 60_000): Promise<void> {
    const deadline = performance.now() + limitMs;
    const until = async (streaming: number): Promise<void> => {
      while (this.streaming < streaming) {
        if (performance.now() > deadline) throw new Error(`${this.streaming} of ${streaming} readers stream`);
        await pause(5);
      }
    };
    const wanted = this.#sockets.length + count;
    while (this.#sockets.length < wanted) {
      const next = Math.min(wanted, this.#sockets.length + OPENED_AT_ONCE);
      for (let n = this.#sockets.length; n < next; n++) this.#connect(n);
      await until(next - OPENED_AT_ONCE / 2);
    }
    await until(wanted);
  }

  /** Cuts reader `n`; it comes back. */
  cut(n: number): void {
    this.#sockets[n]?.destroy();
  }

  get size(): number {
    return this.#sockets.length;
  }

  close(): void {
    this.#over = true;
    for (const socket of this.#sockets) socket?.destroy();
  }

  #connect(n: number): void {
    const { port, pathOf } = this.#options;
    const path = pathOf(n);
    const before = this.#places[n];
    const place = before?.path === path ? before : { path, lastId: null };
    this.#places[n] = place;
    const resume = place.lastId === null ? "" : `Last-Event-ID: ${place.lastId}\r\n`;
    const socket = connect({ port, host: "127.0.0.1" });
    let isStreaming = false;
    this.#sockets[n] = socket;
    socket.setEncoding("latin1");
    socket.once("connect", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n${resume}\r\n`));
    socket.on("data", (text: string) => {
      if (!isStreaming) {
        isStreaming = text.startsWith("HTTP/1.1 200");
        if (!isStreaming) {
          this.refused++;
          socket.destroy();
          return;
        }
        this.opened++;
        this.streaming++;
      }
      for (let at = text.indexOf("id: "); at >= 0; at = text.indexOf("id: ", at + 4)) {
        place.lastId = text.slice(at + 4, text.indexOf("\n", at));
        this.events++;
      }
      if (text.endsWith(END_OF_BODY)) socket.destroy();
    });
    socket.on("error", () => {});
    socket.once("close", () => {
      if (isStreaming) this.streaming--;
      this.#sockets[n] = null;
      if (!this.#over) setTimeout(() => this.#over || this.#connect(n), Math.random() * (this.#options.backWithinMs ?? 500));
    });
  }
}
