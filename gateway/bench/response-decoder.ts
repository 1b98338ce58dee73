/**
 * Reads one HTTP/1.1 response out of the bytes of its connection (RFC 9112): the head, then a body in chunks, of a given length, or until
 * the connection closes. It keeps a few numbers, so that one process can hold tens of thousands of them.
 */

export interface ResponseSink {
  head(status: number): void;
  /** Bytes of the body: `[start, end)` of a buffer that is used again as soon as this returns. */
  body(buffer: Buffer, start: number, end: number): void;
  /** The body is complete. */
  done(): void;
  /** It is not HTTP/1.1. Nothing else is told after it. */
  malformed(what: string): void;
}

const HEAD = 0;
const CHUNK_SIZE = 1;
const CHUNK = 2;
const BEHIND_CHUNK = 3;
const TRAILER = 4;
const COUNTED = 5;
const UNTIL_CLOSE = 6;
const OVER = 7;

const MAX_HEAD_BYTES = 65_536;
const LF = 10;
const CR = 13;

export class ResponseDecoder {
  readonly #sink: ResponseSink;
  #state = HEAD;
  #head = "";
  /** Bytes of the chunk, or of the body, that are still to come. */
  #left = 0;
  /** Digits of the size line so far; beyond them comes an extension, which has no meaning here. */
  #digits = 0;
  #inExtension = false;
  #trailerLineEmpty = true;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  feed(buffer: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && this.#state !== OVER) {
      switch (this.#state) {
        case HEAD:
          at = this.#readHead(buffer, at, end);
          break;
        case CHUNK_SIZE:
          at = this.#readSize(buffer, at, end);
          break;
        case CHUNK:
        case COUNTED:
          at = this.#readCounted(buffer, at, end);
          break;
        case BEHIND_CHUNK:
          if (buffer[at] === LF) this.#state = CHUNK_SIZE;
          else if (buffer[at] !== CR) this.#fail("a chunk is longer than its size");
          at++;
          break;
        case TRAILER:
          at = this.#readTrailer(buffer, at);
          break;
        default:
          this.#sink.body(buffer, at, end);
          at = end;
      }
    }
  }

  /** The connection has closed. True when that was the proper end of this body, or came behind it. */
  close(): boolean {
    if (this.#state === UNTIL_CLOSE) this.#finish();
    return this.#state === OVER;
  }

  #readHead(buffer: Buffer, start: number, end: number): number {
    const before = this.#head.length;
    this.#head += buffer.toString("latin1", start, end);
    const stop = this.#head.indexOf("\r\n\r\n", Math.max(0, before - 3));
    if (stop < 0) {
      if (this.#head.length > MAX_HEAD_BYTES) this.#fail("the head has no end");
      return end;
    }
    const head = this.#head.slice(0, stop);
    this.#head = "";
    const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1];
    if (status === undefined) {
      this.#fail("the answer is not HTTP/1.1");
      return end;
    }
    const length = /^content-length: *(\d+) *$/im.exec(head)?.[1];
    if (/^transfer-encoding: *chunked *$/im.test(head)) this.#state = CHUNK_SIZE;
    else if (length !== undefined) {
      this.#left = Number(length);
      this.#state = COUNTED;
    } else this.#state = UNTIL_CLOSE;
    this.#sink.head(Number(status));
    if (this.#state === COUNTED && this.#left === 0) this.#finish();
    return start + (stop + 4 - before);
  }

  #readSize(buffer: Buffer, start: number, end: number): number {
    for (let at = start; at < end; at++) {
      const byte = buffer[at]!;
      if (byte === LF) {
        if (this.#digits === 0) this.#fail("a chunk has no size");
        else if (this.#left === 0) this.#state = TRAILER;
        else this.#state = CHUNK;
        this.#digits = 0;
        this.#inExtension = false;
        this.#trailerLineEmpty = true;
        return at + 1;
      }
      if (this.#inExtension || byte === CR) continue;
      const value = hexValue(byte);
      if (value >= 0 && this.#digits < 12) {
        this.#left = (this.#digits === 0 ? 0 : this.#left * 16) + value;
        this.#digits++;
      } else if (byte === 0x3b || byte === 0x20) this.#inExtension = true;
      else {
        this.#fail("a chunk's size is no number");
        return end;
      }
    }
    return end;
  }

  #readCounted(buffer: Buffer, start: number, end: number): number {
    const stop = Math.min(end, start + this.#left);
    this.#left -= stop - start;
    const counted = this.#state === COUNTED;
    if (this.#left === 0 && !counted) this.#state = BEHIND_CHUNK;
    this.#sink.body(buffer, start, stop);
    if (this.#left === 0 && counted) this.#finish();
    return stop;
  }

  #readTrailer(buffer: Buffer, at: number): number {
    const byte = buffer[at]!;
    if (byte === LF) {
      if (this.#trailerLineEmpty) this.#finish();
      this.#trailerLineEmpty = true;
    } else if (byte !== CR) this.#trailerLineEmpty = false;
    return at + 1;
  }

  #finish(): void {
    this.#state = OVER;
    this.#sink.done();
  }

  #fail(what: string): void {
    this.#state = OVER;
    this.#sink.malformed(what);
  }
}

function hexValue(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 0x20;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
