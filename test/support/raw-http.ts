/** HTTP by bytes for tests: what goes out is exactly what the test wrote, and what comes back is seen as it came. */
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export interface TemplateValues {
  readonly RUN?: string;
  readonly TOKEN?: string;
  readonly PUBLISH_PATH?: string;
}

/** Bytes to send, or a pause in milliseconds before the next bytes. */
export type Piece = Buffer | number;

const DEFAULT_RUN = "11111111-2222-4333-8444-555555555555";

/**
 * Fills a `.http` template: `{{RUN}}`, `{{TOKEN}}`, `{{PUBLISH_PATH}}` by value, `{{FILL:n}}` by n letters x, `{{CL}}` in the head by the
 * length of the body; `{{PAUSE:ms}}` splits the write there and is no part of the body.
 */
export function fillTemplate(template: Uint8Array, values: TemplateValues = {}): Piece[] {
  const run = values.RUN ?? DEFAULT_RUN;
  // latin1 keeps every byte as one character, so the text functions below are byte functions.
  let text = Buffer.from(template)
    .toString("latin1")
    .replaceAll("{{RUN}}", run)
    .replaceAll("{{TOKEN}}", values.TOKEN ?? "test-token")
    .replaceAll("{{PUBLISH_PATH}}", values.PUBLISH_PATH ?? `/api/v1/runs/${run}/events`)
    .replace(/\{\{FILL:(\d+)\}\}/g, (_, count: string) => "x".repeat(Number(count)));
  const split = text.indexOf("\r\n\r\n");
  if (split >= 0) {
    const body = text.slice(split).slice(4);
    const length = body.replace(/\{\{PAUSE:\d+\}\}/g, "").length;
    text = `${text.slice(0, split).replaceAll("{{CL}}", String(length))}\r\n\r\n${body}`;
  }
  return text
    .split(/\{\{PAUSE:(\d+)\}\}/)
    .map((part, index) => (index % 2 === 1 ? Number(part) : Buffer.from(part, "latin1")))
    .filter((piece) => typeof piece === "number" || piece.length > 0);
}

/** A TCP connection that remembers everything it received. Never half-closes: the server takes a FIN for an abort. */
export class RawConnection {
  readonly socket: Socket;
  /** True once the server has closed, cleanly or by a reset. */
  closed = false;
  #chunks: Buffer[] = [];
  #waiters = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#wake();
    });
    socket.on("error", () => {});
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      this.closed = true;
      this.#wake();
    });
  }

  static open(port: number, host = "127.0.0.1"): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawConnection(socket));
      });
    });
  }

  /** All bytes so far. */
  get bytes(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }

  /** All bytes so far as latin1 text, one character a byte. */
  get text(): string {
    return this.bytes.toString("latin1");
  }

  /** Sends text as UTF-8, bytes as they are, pieces with their pauses. Writes after the server closed are dropped. */
  async send(data: string | Uint8Array | readonly Piece[]): Promise<void> {
    const pieces = typeof data === "string" || data instanceof Uint8Array ? [Buffer.from(data as string)] : data;
    for (const piece of pieces) {
      if (typeof piece === "number") await delay(piece);
      else if (!this.socket.destroyed) this.socket.write(piece);
    }
  }

  /** Waits until `seen` says true (it is asked again at each arrival and at the close), or throws with what came when the limit is over. */
  async until(seen: (connection: RawConnection) => boolean, limitMs = 10_000, what = String(seen)): Promise<void> {
    const deadline = performance.now() + limitMs;
    while (!seen(this)) {
      const left = deadline - performance.now();
      if (left <= 0)
        throw new Error(
          `not within ${limitMs} ms: ${what}\nreceived (${this.closed ? "closed" : "open"}): ${this.text.slice(-2_000)}`,
        );
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.#waiters.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, left);
        this.#waiters.add(wake);
      });
    }
  }

  untilText(text: string, limitMs?: number): Promise<void> {
    const bytes = Buffer.from(text);
    return this.until((connection) => connection.bytes.includes(bytes), limitMs, JSON.stringify(text));
  }

  untilClosed(limitMs?: number): Promise<void> {
    return this.until((connection) => connection.closed, limitMs, "the server closes");
  }

  /** Waits for `count` whole answers (or the close) and gives them. For answers with a body of unknown length use `until`. */
  async responses(count: number, options: { readonly limitMs?: number; readonly head?: boolean } = {}): Promise<RawResponse[]> {
    const read = () => parseResponses(this.bytes, { closed: this.closed, head: options.head === true });
    await this.until(
      (connection) => connection.closed || read().filter((one) => one.complete).length >= count,
      options.limitMs,
      `${count} answers`,
    );
    return read();
  }

  /** The first answer, whole. Throws when the server closed without one. */
  async response(options: { readonly limitMs?: number; readonly head?: boolean } = {}): Promise<RawResponse> {
    const first = (await this.responses(1, options))[0];
    if (first === undefined) throw new Error("the server closed without an answer");
    return first;
  }

  /** Waits for the head of the first answer, of which the body may go on. */
  async head(limitMs?: number): Promise<RawResponse> {
    await this.until((connection) => connection.closed || connection.bytes.includes("\r\n\r\n"), limitMs, "a response head");
    const first = parseResponses(this.bytes, { closed: this.closed, head: false })[0];
    if (first === undefined) throw new Error("the server closed without an answer");
    return first;
  }

  /** Body bytes of the first answer so far, without the chunked framing. */
  get body(): Buffer {
    return parseResponses(this.bytes, { closed: this.closed, head: false })[0]?.body ?? Buffer.alloc(0);
  }

  /** Events in the body of the first answer so far. */
  get events(): SseEvent[] {
    return new SseDecoder().feed(this.body);
  }

  /** Waits until the body of the first answer holds `count` events, and gives all. */
  async untilEvents(count: number, limitMs?: number): Promise<SseEvent[]> {
    await this.until((connection) => connection.events.length >= count, limitMs, `${count} events`);
    return this.events;
  }

  close(): void {
    this.socket.destroy();
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }
}

/** Opens a connection, sends, and leaves the rest to the caller. */
export async function sendRaw(port: number, data: string | Uint8Array | readonly Piece[], host?: string): Promise<RawConnection> {
  const connection = await RawConnection.open(port, host);
  await connection.send(data);
  return connection;
}

export interface RawResponse {
  readonly status: number;
  readonly reason: string;
  /** In the order of the wire, names in lower case; a name may come twice. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** True when the framing says that the body ended: Content-Length reached, last chunk seen, or closed where neither was given. */
  readonly complete: boolean;
  /** Bytes of each chunk, when the body is chunked. */
  readonly chunks: readonly Buffer[];
}

/** The value of a header, values of a repeated one joined by ", "; null without it. */
export function headerOf(response: RawResponse, name: string): string | null {
  const values = response.headers.filter(([key]) => key === name.toLowerCase()).map(([, value]) => value);
  return values.length === 0 ? null : values.join(", ");
}

/** Takes received bytes apart into answers. With `head` no answer has a body (RFC 9110 9.3.2). Throws where the framing is broken. */
export function parseResponses(bytes: Buffer, options: { readonly closed: boolean; readonly head: boolean }): RawResponse[] {
  const responses: RawResponse[] = [];
  let at = 0;
  while (at < bytes.length) {
    const headEnd = bytes.indexOf("\r\n\r\n", at);
    if (headEnd < 0) break;
    const lines = bytes.toString("latin1", at, headEnd).split("\r\n");
    const status = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(lines[0] ?? "");
    if (status === null) throw new Error(`not a status line: ${JSON.stringify(lines[0])}`);
    const headers = lines.slice(1).map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    });
    at = headEnd + 4;
    const find = (name: string) => headers.find(([key]) => key === name)?.[1];
    const code = Number(status[1]);
    let body: Buffer = Buffer.alloc(0);
    let chunks: Buffer[] = [];
    let complete = true;
    const length = find("content-length");
    if (options.head || code === 204 || code === 304 || code < 200) {
      // No body, whatever the header fields say (RFC 9112 6.3).
    } else if (find("transfer-encoding") === "chunked") {
      const decoded = decodeChunked(bytes.subarray(at));
      ({ chunks, complete } = decoded);
      body = Buffer.concat(chunks);
      at += decoded.used;
    } else if (length !== undefined) {
      body = bytes.subarray(at, at + Number(length));
      complete = body.length === Number(length);
      at += body.length;
    } else {
      body = bytes.subarray(at);
      complete = options.closed;
      at = bytes.length;
    }
    responses.push({ status: code, reason: status[2] ?? "", headers, body, complete, chunks });
    if (!complete) break;
  }
  return responses;
}

/** Takes the chunked framing off (RFC 9112 7.1). `chunks` has whole chunks and what came of the last; throws where it is broken. */
export function decodeChunked(bytes: Buffer): { chunks: Buffer[]; complete: boolean; used: number } {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return { chunks, complete: false, used: bytes.length };
    const line = bytes.toString("latin1", at, lineEnd);
    if (!/^[0-9a-fA-F]+$/.test(line)) throw new Error(`not a chunk size: ${JSON.stringify(line.slice(0, 80))}`);
    const size = Number.parseInt(line, 16);
    const start = lineEnd + 2;
    if (size === 0) {
      if (bytes.length < start + 2) return { chunks, complete: false, used: bytes.length };
      if (bytes.toString("latin1", start, start + 2) !== "\r\n") throw new Error("bytes behind the last chunk");
      return { chunks, complete: true, used: start + 2 };
    }
    chunks.push(bytes.subarray(start, start + size));
    if (bytes.length < start + size + 2)
      return { chunks: chunks.filter((chunk) => chunk.length > 0), complete: false, used: bytes.length };
    if (bytes.toString("latin1", start + size, start + size + 2) !== "\r\n")
      throw new Error(`chunk of ${size} bytes does not end with CRLF`);
    at = start + size + 2;
  }
}

export interface SseEvent {
  readonly event: string;
  readonly data: string;
  /** The last event id after this event, as an EventSource would have it. */
  readonly id: string;
}

/** An event stream decoder by WHATWG HTML 9.2.5 and 9.2.6, fed with bytes as they come. */
export class SseDecoder {
  lastEventId = "";
  retry: number | null = null;
  /** Text of each comment line, without the colon. */
  readonly comments: string[] = [];
  #decoder = new TextDecoder("utf-8");
  #line = "";
  #afterCr = false;
  #data: string[] = [];
  #type = "";
  #idBuffer = "";

  feed(bytes: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    for (const character of this.#decoder.decode(bytes, { stream: true })) {
      const afterCr = this.#afterCr;
      this.#afterCr = character === "\r";
      if (character === "\n" && afterCr) continue;
      if (character === "\n" || character === "\r") {
        this.#takeLine(this.#line, events);
        this.#line = "";
      } else {
        this.#line += character;
      }
    }
    return events;
  }

  #takeLine(line: string, events: SseEvent[]): void {
    if (line === "") {
      this.lastEventId = this.#idBuffer;
      if (this.#data.length > 0)
        events.push({ event: this.#type || "message", data: this.#data.join("\n"), id: this.lastEventId });
      this.#data = [];
      this.#type = "";
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      this.comments.push(line.slice(1));
      return;
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#idBuffer = value;
    else if (field === "retry" && /^[0-9]+$/.test(value)) this.retry = Number(value);
  }
}
