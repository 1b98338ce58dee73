/**
 * Reads RESP2 (https://redis.io/docs/latest/develop/reference/protocol-spec/) from chunks cut anywhere. Bulk strings are slices of the
 * chunk that brought them, so whoever keeps one for long must copy it.
 */

/** An error that Redis answered; a value, since inside an array it is one among others. */
export class ReplyError extends Error {
  /** The first word, such as MOVED or NOPERM. */
  readonly kind: string;

  constructor(message: string) {
    super(message);
    this.name = "ReplyError";
    const space = message.indexOf(" ");
    this.kind = space < 0 ? message : message.slice(0, space);
  }
}

/** The bytes are not what Redis sends. */
export class ProtocolError extends Error {}

/** Simple strings are strings, bulk strings Buffers. Integers beyond 2^53 lose digits; none that we read are so large. */
export type Reply = string | number | Buffer | null | ReplyError | Reply[];

const CR = 13;
const PLUS = 43;
const MINUS = 45;
const COLON = 58;
const DOLLAR = 36;
const STAR = 42;
/** No line that Redis sends is longer; a stream without line ends is not Redis. */
const MAX_LINE_BYTES = 64 * 1024;

export class ReplyReader {
  readonly #onReply: (reply: Reply) => void;
  /** Arrays begun and not complete, outermost first, and how many items each still lacks. */
  readonly #open: Reply[][] = [];
  readonly #lacking: number[] = [];
  /** The begun line, or the part of a bulk string's line end, that the last chunk broke off in. */
  #rest: Buffer | null = null;
  /** A bulk string that spans chunks, its bytes so far included. */
  #bulk: Buffer | null = null;
  #bulkFilled = 0;
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(onReply: (reply: Reply) => void) {
    this.#onReply = onReply;
  }

  /** Takes the next chunk and calls back for each reply that it completes. Throws ProtocolError. */
  push(chunk: Buffer): void {
    if (this.#rest !== null) {
      this.#chunk = Buffer.concat([this.#rest, chunk]);
      this.#rest = null;
    } else {
      this.#chunk = chunk;
    }
    this.#at = 0;
    while (this.#at < this.#chunk.length) {
      if (!(this.#bulk === null ? this.#readItem() : this.#fillBulk())) break;
    }
    this.#chunk = NOTHING;
  }

  /** Reads one item; false when the chunk ends inside it. */
  #readItem(): boolean {
    const chunk = this.#chunk;
    const start = this.#at;
    const end = chunk.indexOf(CR, start);
    if (end < 0 || end + 1 >= chunk.length) {
      if (chunk.length - start > MAX_LINE_BYTES) throw new ProtocolError("not a Redis reply: a line without end");
      this.#rest = chunk.subarray(start);
      return false;
    }
    this.#at = end + 2;
    const type = chunk[start];
    if (type === DOLLAR) return this.#beginBulk(readInteger(chunk, start + 1, end));
    if (type === STAR) this.#beginArray(readInteger(chunk, start + 1, end));
    else if (type === COLON) this.#complete(readInteger(chunk, start + 1, end));
    else if (type === PLUS) this.#complete(chunk.toString("latin1", start + 1, end));
    else if (type === MINUS) this.#complete(new ReplyError(chunk.toString("utf8", start + 1, end)));
    else throw new ProtocolError("not a Redis reply: is this the port of another service, or of Redis with TLS?");
    return true;
  }

  #beginBulk(length: number): boolean {
    if (length < 0) {
      this.#complete(null);
      return true;
    }
    const end = this.#at + length;
    if (end + 2 <= this.#chunk.length) {
      const value = this.#chunk.subarray(this.#at, end);
      this.#at = end + 2;
      this.#complete(value);
      return true;
    }
    // The two bytes of the line end are read into it too, and cut off at the end.
    this.#bulk = Buffer.allocUnsafe(length + 2);
    this.#bulkFilled = 0;
    return this.#fillBulk();
  }

  #fillBulk(): boolean {
    const bulk = this.#bulk!;
    const taken = this.#chunk.copy(bulk, this.#bulkFilled, this.#at);
    this.#at += taken;
    this.#bulkFilled += taken;
    if (this.#bulkFilled < bulk.length) return false;
    this.#bulk = null;
    this.#complete(bulk.subarray(0, bulk.length - 2));
    return true;
  }

  #beginArray(length: number): void {
    if (length < 0) this.#complete(null);
    else if (length === 0) this.#complete([]);
    else {
      this.#open.push([]);
      this.#lacking.push(length);
    }
  }

  #complete(value: Reply): void {
    let complete = value;
    for (;;) {
      const depth = this.#open.length - 1;
      if (depth < 0) {
        this.#onReply(complete);
        return;
      }
      const array = this.#open[depth]!;
      array.push(complete);
      if (--this.#lacking[depth]! > 0) return;
      this.#open.pop();
      this.#lacking.pop();
      complete = array;
    }
  }
}

const NOTHING = Buffer.alloc(0);

function readInteger(chunk: Buffer, start: number, end: number): number {
  let at = start;
  const negative = chunk[at] === MINUS;
  if (negative) at++;
  if (at === end) throw new ProtocolError("not a Redis reply: a number is missing");
  let value = 0;
  for (; at < end; at++) {
    const digit = chunk[at]! - 48;
    if (digit < 0 || digit > 9) throw new ProtocolError("not a Redis reply: a number is broken");
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}
