/**
 * Reads frames out of the bytes of an event stream (WHATWG HTML 9.2.6, with lines that end in LF or CRLF, as the gateway sends them). Events
 * of the bench are read in place, without a string or an object for any of them: the loader shares its machine with what it measures.
 */
import { BENCH_KIND, dataPrefix, readEventData } from "./bench-event.ts";

export interface FrameSink {
  /** An event of the bench. Its id as two numbers, exact below 2^53; -1 where it had none. */
  event(milliseconds: number, sequence: number, n: number, sentMicros: number): void;
  /** Any other frame. */
  frame(name: string, milliseconds: number, sequence: number, data: string): void;
  /** A frame that is no event of this run, or an id that is none. */
  unreadable(what: string): void;
}

const MAX_LINE_BYTES = 1_048_576;
const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const D = 100;
const E = 101;
const I = 105;
/** What stands between the digits of `n` and those of `t`. */
const TIME = Buffer.from(',"t":');

/** `runId` and the bytes that its events begin with: one for all readers of a run. */
export class RunSpelling {
  readonly runId: string;
  readonly prefix: Buffer;

  constructor(runId: string) {
    this.runId = runId;
    this.prefix = dataPrefix(runId);
  }
}

export class FrameDecoder {
  readonly #sink: FrameSink;
  readonly #run: RunSpelling;
  /** The line that a read cut in two. */
  #rest: Buffer | null = null;
  #milliseconds = -1;
  #sequence = -1;
  #name = "";
  #n = -1;
  #sentMicros = -1;
  #data: string | null = null;

  constructor(sink: FrameSink, run: RunSpelling) {
    this.#sink = sink;
    this.#run = run;
  }

  feed(buffer: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end) {
      const found = buffer.indexOf(LF, at);
      const stop = found < 0 || found >= end ? end : found;
      if (this.#rest !== null) {
        const line: Buffer = Buffer.concat([this.#rest, buffer.subarray(at, stop)]);
        this.#rest = null;
        if (stop === end) this.#keep(line);
        else this.#line(line, 0, line.length);
      } else if (stop === end) this.#keep(Buffer.from(buffer.subarray(at, end)));
      else this.#line(buffer, at, stop);
      at = stop + 1;
    }
  }

  #keep(rest: Buffer): void {
    if (rest.length > MAX_LINE_BYTES) this.#sink.unreadable("a line has no end");
    else this.#rest = rest;
  }

  #line(buffer: Buffer, start: number, stop: number): void {
    const end = stop > start && buffer[stop - 1] === CR ? stop - 1 : stop;
    if (start === end) {
      this.#dispatch();
      return;
    }
    switch (buffer[start]) {
      case D:
        if (startsWith(buffer, start, end, "data:")) this.#readData(buffer, valueAt(buffer, start + 5, end), end);
        break;
      case E:
        if (startsWith(buffer, start, end, "event:")) this.#name = this.#nameOf(buffer, valueAt(buffer, start + 6, end), end);
        break;
      case I:
        if (startsWith(buffer, start, end, "id:")) this.#readId(buffer, valueAt(buffer, start + 3, end), end);
        break;
    }
  }

  /** The same string each time for the kind of the bench. */
  #nameOf(buffer: Buffer, start: number, end: number): string {
    if (end - start === BENCH_KIND.length && startsWith(buffer, start, end, BENCH_KIND)) return BENCH_KIND;
    return buffer.toString("utf8", start, end);
  }

  #readId(buffer: Buffer, start: number, end: number): void {
    const dash = digitsEnd(buffer, start, end);
    const stop = digitsEnd(buffer, dash + 1, end);
    if (dash === start || buffer[dash] !== 45 || stop === dash + 1 || stop !== end) {
      this.#sink.unreadable(`an id is ${JSON.stringify(buffer.toString("utf8", start, Math.min(end, start + 60)))}`);
      return;
    }
    this.#milliseconds = digits(buffer, start, dash);
    this.#sequence = digits(buffer, dash + 1, stop);
  }

  #readData(buffer: Buffer, start: number, end: number): void {
    const { prefix } = this.#run;
    if (this.#name === BENCH_KIND && this.#data === null && this.#n < 0 && begins(buffer, start, end, prefix)) {
      const n = start + prefix.length;
      const nEnd = digitsEnd(buffer, n, end);
      const t = nEnd + TIME.length;
      const tEnd = digitsEnd(buffer, t, end);
      if (nEnd > n && tEnd > t && begins(buffer, nEnd, end, TIME) && buffer[end - 1] === 125) {
        this.#n = digits(buffer, n, nEnd);
        this.#sentMicros = digits(buffer, t, tEnd);
        return;
      }
    }
    const line = buffer.toString("utf8", start, end);
    this.#data = this.#data === null ? line : `${this.#data}\n${line}`;
  }

  #dispatch(): void {
    const name = this.#name;
    const data = this.#data;
    if (data === null) {
      if (this.#n >= 0) this.#sink.event(this.#milliseconds, this.#sequence, this.#n, this.#sentMicros);
    } else if (name === BENCH_KIND) {
      const event = readEventData(data, this.#run.runId);
      if (event === null) this.#sink.unreadable(`an event is ${data.slice(0, 200)}`);
      else this.#sink.event(this.#milliseconds, this.#sequence, event.n, event.sentMicros);
    } else this.#sink.frame(name, this.#milliseconds, this.#sequence, data);
    this.#milliseconds = -1;
    this.#sequence = -1;
    this.#name = "";
    this.#n = -1;
    this.#sentMicros = -1;
    this.#data = null;
  }
}

function startsWith(buffer: Buffer, start: number, end: number, text: string): boolean {
  if (end - start < text.length) return false;
  for (let i = 0; i < text.length; i++) if (buffer[start + i] !== text.charCodeAt(i)) return false;
  return true;
}

function begins(buffer: Buffer, start: number, end: number, bytes: Buffer): boolean {
  return end - start >= bytes.length && buffer.compare(bytes, 0, bytes.length, start, start + bytes.length) === 0;
}

/** Where a field's value begins: one space behind the colon is not part of it. */
function valueAt(buffer: Buffer, start: number, end: number): number {
  return start < end && buffer[start - 1] === COLON && buffer[start] === SPACE ? start + 1 : start;
}

function digitsEnd(buffer: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && buffer[at]! >= 48 && buffer[at]! <= 57) at++;
  return at;
}

function digits(buffer: Buffer, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + (buffer[at]! - 48);
  return value;
}
