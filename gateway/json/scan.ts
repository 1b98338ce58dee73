/**
 * Checks that bytes are JSON (RFC 8259) and tells where the values lie, without building any: spellings, order and size of numbers
 * stay what they were. Goes on in slices, so that a large body does not hold up the event loop.
 */
import { PenstockError } from "../errors.ts";

// Before the class, though exports come first elsewhere: what stands below it costs the scanner a check at each use (V8, measured).
const VALUE = 0;
const FIRST_VALUE = 1;
const KEY = 2;
const FIRST_KEY = 3;
const COLON = 4;
const AFTER = 5;
const DONE = 6;
const IN_STRING = 7;
const IN_KEY = 8;

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const SLASH = 0x2f;
const ZERO = 0x30;
const COLON_BYTE = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_E = 0x65;
const LOWER_F = 0x66;
const LOWER_T = 0x74;
const LOWER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const NO_BYTES = new Uint8Array(0);
const TRUE = Buffer.from("true");
const FALSE = Buffer.from("false");
const NULL = Buffer.from("null");
/** 1 for each letter that may stand alone behind a backslash. */
const SHORT_ESCAPES = new Uint8Array(256);
for (const letter of Buffer.from('"\\/bfnrt')) SHORT_ESCAPES[letter] = 1;
/** BS, TAB, LF, FF, CR. */
const SHORT_CONTROLS: readonly number[] = [8, 9, 10, 12, 13];

const ORDINARY = 0;
const ENDS = 1;
const ESCAPES = 2;
const MAY_END_LINES = 3;
const FORBIDDEN = 4;
const STRING_BYTES = new Uint8Array(256).fill(FORBIDDEN, 0, 0x20);
STRING_BYTES[QUOTE] = ENDS;
STRING_BYTES[BACKSLASH] = ESCAPES;
STRING_BYTES[0xc2] = STRING_BYTES[0xe2] = MAY_END_LINES;

/** Hears of values that lie at most `visitDepth` containers deep, each when it ends: what is inside comes before what is around. */
export interface ValueVisitor {
  /**
   * @param depth Containers around the value; 0 is the whole text.
   * @param keyStart First byte of the member's name, without its quote; -1 for an element of an array and for the whole text.
   * @param keyEnd The byte behind the name.
   * @param start First byte of the value.
   * @param end The byte behind the value.
   * @param normal True when the value's bytes are surely its normal form (`compact.ts`).
   */
  value(depth: number, keyStart: number, keyEnd: number, start: number, end: number, normal: boolean): void;
}

export class JsonSyntaxError extends PenstockError {
  /** Where the text stops being JSON, in bytes from its start. */
  readonly offset: number;

  constructor(offset: number) {
    super("PENSTOCK_INVALID_JSON", `Not JSON (RFC 8259) at byte ${offset}.`, 400);
    this.offset = offset;
  }
}

/** One text at a time: `begin`, then `advance` until it returns true. May be used again, also after an error. */
export class JsonScanner {
  readonly #visitor: ValueVisitor;
  readonly #visitDepth: number;
  readonly #keyStarts: number[];
  readonly #keyEnds: number[];
  readonly #starts: number[];
  /** `#oddities` at the start of the open value of each depth. */
  readonly #odditiesAt: number[];
  /** Kinds of the open containers: 1 is an object. */
  #stack = new Uint8Array(64);
  #bytes: Uint8Array = new Uint8Array(0);
  #from = 0;
  #position = 0;
  #end = 0;
  #state = DONE;
  #depth = 0;
  #deepest = 0;
  /** Things seen that the normal form would have otherwise. */
  #oddities = 0;

  constructor(visitor: ValueVisitor, visitDepth: number) {
    this.#visitor = visitor;
    this.#visitDepth = visitDepth;
    this.#keyStarts = new Array<number>(visitDepth + 1).fill(-1);
    this.#keyEnds = new Array<number>(visitDepth + 1).fill(-1);
    this.#starts = new Array<number>(visitDepth + 1).fill(0);
    this.#odditiesAt = new Array<number>(visitDepth + 1).fill(0);
  }

  /** Containers that lay inside one another at most. */
  get deepest(): number {
    return this.#deepest;
  }

  /** `bytes` must be valid UTF-8, which is not checked here. */
  begin(bytes: Uint8Array, start = 0, end = bytes.length): void {
    this.#bytes = bytes;
    this.#from = start;
    this.#position = start;
    this.#end = end;
    this.#state = VALUE;
    this.#depth = 0;
    this.#deepest = 0;
    this.#oddities = 0;
  }

  /** Reads on for `maxBytes` bytes or a few more; true when the text is over. Throws JsonSyntaxError. */
  advance(maxBytes: number = 0x3fffffff): boolean {
    const bytes = this.#bytes;
    const end = this.#end;
    // Not Math.min: it makes doubles of what the loops compare, and halves their speed.
    const stop = end - this.#position > maxBytes ? this.#position + maxBytes : end;
    while (this.#position < stop) {
      if (this.#state >= IN_STRING) {
        this.#string(stop);
        continue;
      }
      const byte = bytes[this.#position] as number;
      if (byte === SPACE || byte === LF || byte === CR || byte === TAB) {
        this.#position++;
        this.#oddities++;
      } else {
        this.#token(byte);
      }
    }
    if (this.#position < end) return false;
    if (this.#state !== DONE) this.#fail();
    this.#bytes = NO_BYTES;
    return true;
  }

  #token(byte: number): void {
    switch (this.#state) {
      case VALUE:
        this.#value(byte);
        break;
      case FIRST_VALUE:
        if (byte === CLOSE_BRACKET) this.#close();
        else this.#value(byte);
        break;
      case KEY:
        this.#key(byte);
        break;
      case FIRST_KEY:
        if (byte === CLOSE_BRACE) this.#close();
        else this.#key(byte);
        break;
      case COLON:
        if (byte !== COLON_BYTE) this.#fail();
        this.#position++;
        this.#state = VALUE;
        break;
      case AFTER:
        this.#after(byte);
        break;
      default:
        this.#fail();
    }
  }

  #value(byte: number): void {
    if (this.#depth <= this.#visitDepth) {
      this.#starts[this.#depth] = this.#position;
      this.#odditiesAt[this.#depth] = this.#oddities;
    }
    if (byte === QUOTE) {
      this.#position++;
      this.#state = IN_STRING;
    } else if (byte === OPEN_BRACE) {
      this.#open(1, FIRST_KEY);
    } else if (byte === OPEN_BRACKET) {
      this.#open(0, FIRST_VALUE);
    } else if (byte === MINUS || isDigit(byte)) {
      this.#number();
      this.#endValue();
    } else {
      this.#literal(byte);
      this.#endValue();
    }
  }

  #open(kind: number, state: number): void {
    if (this.#depth === this.#stack.length) {
      const larger = new Uint8Array(this.#stack.length * 2);
      larger.set(this.#stack);
      this.#stack = larger;
    }
    this.#stack[this.#depth++] = kind;
    if (this.#depth > this.#deepest) this.#deepest = this.#depth;
    if (this.#depth <= this.#visitDepth) this.#keyStarts[this.#depth] = -1;
    this.#position++;
    this.#state = state;
  }

  #close(): void {
    this.#position++;
    this.#depth--;
    this.#endValue();
  }

  #endValue(): void {
    const depth = this.#depth;
    if (depth <= this.#visitDepth) {
      const normal = this.#odditiesAt[depth] === this.#oddities;
      const keyStart = this.#keyStarts[depth] as number;
      this.#visitor.value(depth, keyStart, this.#keyEnds[depth] as number, this.#starts[depth] as number, this.#position, normal);
    }
    this.#state = depth === 0 ? DONE : AFTER;
  }

  #key(byte: number): void {
    if (byte !== QUOTE) this.#fail();
    this.#position++;
    if (this.#depth <= this.#visitDepth) this.#keyStarts[this.#depth] = this.#position;
    this.#state = IN_KEY;
  }

  #after(byte: number): void {
    const inObject = this.#stack[this.#depth - 1] === 1;
    if (byte === COMMA) {
      this.#position++;
      this.#state = inObject ? KEY : VALUE;
    } else if (byte === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
      this.#close();
    } else {
      this.#fail();
    }
  }

  /** Reads on in a string, to its end or `stop`. */
  #string(stop: number): void {
    const bytes = this.#bytes;
    let position = this.#position;
    for (;;) {
      position = behindOrdinary(bytes, position, stop);
      if (position >= stop) break;
      const kind = STRING_BYTES[bytes[position] as number] as number;
      if (kind === ENDS) {
        this.#position = position + 1;
        this.#endString(position);
        return;
      }
      if (kind === FORBIDDEN) this.#failAt(position);
      if (kind === MAY_END_LINES && endsLines(bytes, position)) this.#oddities++;
      position += kind === ESCAPES ? this.#escape(position) : 1;
    }
    this.#position = position;
  }

  #endString(end: number): void {
    if (this.#state === IN_STRING) {
      this.#endValue();
      return;
    }
    if (this.#depth <= this.#visitDepth) this.#keyEnds[this.#depth] = end;
    this.#state = COLON;
  }

  /** Checks the escape at `position`, and returns its length. */
  #escape(position: number): number {
    const bytes = this.#bytes;
    const letter = position + 1 < this.#end ? (bytes[position + 1] as number) : 0;
    if (letter === LOWER_U) {
      if (position + 6 > this.#end) this.#failAt(position);
      for (let digit = position + 2; digit < position + 6; digit++) {
        if (HEX_VALUES[bytes[digit] as number] === NOT_HEX) this.#failAt(position);
      }
      if (!isNormalControlEscape(bytes, position)) this.#oddities++;
      return 6;
    }
    if (SHORT_ESCAPES[letter] !== 1) this.#failAt(position);
    if (letter === SLASH) this.#oddities++;
    return 2;
  }

  #number(): void {
    const bytes = this.#bytes;
    const end = this.#end;
    let position = this.#position;
    if (bytes[position] === MINUS) position++;
    if (bytes[position] === ZERO && position < end) position++;
    else position = this.#digits(position);
    if (position < end && bytes[position] === DOT) position = this.#digits(position + 1);
    if (position < end && ((bytes[position] as number) | 0x20) === LOWER_E) {
      position++;
      if (bytes[position] === PLUS || bytes[position] === MINUS) position++;
      position = this.#digits(position);
    }
    this.#position = position;
  }

  /** Behind one digit or more. */
  #digits(start: number): number {
    let position = start;
    while (position < this.#end && isDigit(this.#bytes[position] as number)) position++;
    if (position === start) this.#failAt(position);
    return position;
  }

  #literal(byte: number): void {
    const literal = byte === LOWER_T ? TRUE : byte === LOWER_F ? FALSE : NULL;
    const start = this.#position;
    for (let n = 0; n < literal.length; n++) {
      if (start + n >= this.#end || this.#bytes[start + n] !== literal[n]) this.#failAt(start + n);
    }
    this.#position = start + literal.length;
  }

  #fail(): never {
    this.#failAt(this.#position);
  }

  #failAt(position: number): never {
    this.#bytes = NO_BYTES;
    throw new JsonSyntaxError(Math.min(position, this.#end) - this.#from);
  }
}

/** A function of its own: V8 makes more of a loop that is all there is. */
function behindOrdinary(bytes: Uint8Array, start: number, stop: number): number {
  let position = start;
  while (position < stop && STRING_BYTES[bytes[position] as number] === ORDINARY) position++;
  return position;
}

/** True when U+0085, U+2028 or U+2029 begins here: line ends for some SSE clients, though not for the standard (WHATWG HTML 9.2.5). */
export function endsLines(bytes: Uint8Array, position: number): boolean {
  if (bytes[position] === 0xc2) return bytes[position + 1] === 0x85;
  return bytes[position] === 0xe2 && bytes[position + 1] === 0x80 && ((bytes[position + 2] as number) & 0xfe) === 0xa8;
}

/** Value of each hexadecimal digit, by byte; `NOT_HEX` for all others. */
export const NOT_HEX = 255;
export const HEX_VALUES = new Uint8Array(256).fill(NOT_HEX);
for (let digit = 0; digit < 10; digit++) HEX_VALUES[0x30 + digit] = digit;
for (let digit = 0; digit < 6; digit++) HEX_VALUES[0x41 + digit] = HEX_VALUES[0x61 + digit] = 10 + digit;

/** `\u00XX` in lower case for a control character that has no short escape: the one form of `\u` that is surely normal. */
function isNormalControlEscape(bytes: Uint8Array, position: number): boolean {
  if (bytes[position + 2] !== ZERO || bytes[position + 3] !== ZERO) return false;
  const high = bytes[position + 4];
  const low = bytes[position + 5] as number;
  if (low >= 0x41 && low <= 0x46) return false;
  if (high === ZERO + 1) return true;
  return high === ZERO && !SHORT_CONTROLS.includes(HEX_VALUES[low] as number);
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39;
}
