/**
 * The normal form of JSON in Penstock: no white space between tokens; numbers as they were spelled, members in their order, a name
 * that comes twice twice; in strings every `\u` escape as raw UTF-8, but for controls (their short escape, else `\u00xx`), `"`, `\`,
 * and U+0085, U+2028 and U+2029, which are escapes even where they came raw (`endsLines`). Lone surrogates stay escapes: UTF-8 has
 * none. Taking the normal form of a normal form changes nothing.
 */
import { endsLines, HEX_VALUES } from "./scan.ts";

// Before the class for the reason given in scan.ts.
/** Up to here a loop is cheaper than a view of the bytes. */
const SHORT = 48;
const SPACE = 0x20;
const QUOTE = 0x22;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const HEX_DIGITS = Buffer.from("0123456789abcdef");
/** Letters of the short escapes, by control character. */
const SHORT_CONTROLS: readonly (number | undefined)[] = Object.assign([], { 8: 0x62, 9: 0x74, 10: 0x6e, 12: 0x66, 13: 0x72 });

/**
 * Writes the normal form of a value, which must be valid JSON. What lies beyond the target's end is counted but not written: the
 * length of any value is told in fixed memory.
 */
export class Compactor {
  readonly #target: Uint8Array;
  #bytes: Uint8Array = new Uint8Array(0);
  #position = 0;
  #end = 0;
  #inString = false;
  /** Where the next byte goes; beyond the target's length when it did not hold everything. */
  written = 0;

  constructor(target: Uint8Array) {
    this.#target = target;
  }

  /** The next value; it goes behind what is written. */
  begin(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#position = start;
    this.#end = end;
    this.#inString = false;
  }

  /** Goes on for `maxBytes` of input or a few more; true when the value is done. */
  advance(maxBytes: number = 0x3fffffff): boolean {
    const bytes = this.#bytes;
    const end = this.#end;
    // Not Math.min: it makes doubles of what the loops compare, and halves their speed.
    const stop = end - this.#position > maxBytes ? this.#position + maxBytes : end;
    while (this.#position < stop) {
      const start = this.#position;
      if (this.#inString) {
        const special = behindOrdinary(bytes, start, stop);
        this.copy(bytes, start, special);
        this.#position = special;
        if (special < stop) this.#special(bytes[special] as number);
      } else {
        const byte = bytes[start] as number;
        this.#position++;
        if (byte <= SPACE) continue;
        this.#put(byte);
        this.#inString = byte === QUOTE;
      }
    }
    return this.#position >= end;
  }

  /** Copies bytes that are in normal form already. */
  copy(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    const room = this.#target.length - this.written;
    if (length <= SHORT) {
      for (let n = 0; n < length; n++) this.#target[this.written + n] = bytes[start + n] as number;
    } else if (room > 0) {
      this.#target.set(bytes.subarray(start, Math.min(end, start + room)), this.written);
    }
    this.written += length;
  }

  /** Writes ASCII text that is in normal form already. */
  ascii(text: string): void {
    for (let n = 0; n < text.length; n++) this.#target[this.written++] = text.charCodeAt(n);
  }

  /** What is not ordinary in a string. */
  #special(byte: number): void {
    if (byte === BACKSLASH) {
      this.#escape();
    } else if (byte !== QUOTE && endsLines(this.#bytes, this.#position)) {
      this.#rawLineEnd(byte);
    } else {
      this.#put(byte);
      this.#position++;
      if (byte === QUOTE) this.#inString = false;
    }
  }

  #escape(): void {
    const bytes = this.#bytes;
    const position = this.#position;
    const letter = bytes[position + 1] as number;
    if (letter !== LOWER_U) {
      if (letter !== SLASH) this.#put(BACKSLASH);
      this.#put(letter);
      this.#position = position + 2;
      return;
    }
    const unit = unitAt(bytes, position);
    const low = unit >= 0xd800 && unit < 0xdc00 ? this.#lowSurrogate(position + 6) : 0;
    this.#position = position + (low === 0 ? 6 : 12);
    if (low !== 0) this.#astral(0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff));
    else if (staysEscape(unit)) this.#putEscape(unit);
    else this.#character(unit);
  }

  /** The low surrogate that is escaped at `position`; 0 when there is none. */
  #lowSurrogate(position: number): number {
    if (position + 6 > this.#end || this.#bytes[position] !== BACKSLASH || this.#bytes[position + 1] !== LOWER_U) return 0;
    const unit = unitAt(this.#bytes, position);
    return (unit & 0xfc00) === 0xdc00 ? unit : 0;
  }

  #character(unit: number): void {
    if (unit < 0x80) {
      const letter = unit === QUOTE || unit === BACKSLASH ? unit : SHORT_CONTROLS[unit];
      if (letter !== undefined) this.#put(BACKSLASH);
      this.#put(letter ?? unit);
    } else if (unit < 0x800) {
      this.#put(0xc0 | (unit >> 6));
      this.#put(0x80 | (unit & 0x3f));
    } else {
      this.#put(0xe0 | (unit >> 12));
      this.#put(0x80 | ((unit >> 6) & 0x3f));
      this.#put(0x80 | (unit & 0x3f));
    }
  }

  #astral(codePoint: number): void {
    this.#put(0xf0 | (codePoint >> 18));
    this.#put(0x80 | ((codePoint >> 12) & 0x3f));
    this.#put(0x80 | ((codePoint >> 6) & 0x3f));
    this.#put(0x80 | (codePoint & 0x3f));
  }

  #rawLineEnd(first: number): void {
    const third = this.#bytes[this.#position + 2] as number;
    this.#putEscape(first === 0xc2 ? 0x85 : 0x2000 | (third & 0x3f));
    this.#position += first === 0xc2 ? 2 : 3;
  }

  #putEscape(unit: number): void {
    this.#put(BACKSLASH);
    this.#put(LOWER_U);
    for (let shift = 12; shift >= 0; shift -= 4) this.#put(HEX_DIGITS[(unit >> shift) & 15] as number);
  }

  #put(byte: number): void {
    this.#target[this.written++] = byte;
  }
}

/** The normal form of a value that is valid JSON. */
export function compactJson(bytes: Uint8Array, start = 0, end = bytes.length): Buffer {
  // Raw U+0085 grows most: two bytes become six.
  const target = Buffer.allocUnsafe((end - start) * 3);
  const compactor = new Compactor(target);
  compactor.begin(bytes, start, end);
  compactor.advance();
  return target.subarray(0, compactor.written);
}

/** The first byte of a string that needs a look. A function of its own: V8 makes more of a loop that is all there is. */
function behindOrdinary(bytes: Uint8Array, start: number, stop: number): number {
  let position = start;
  for (; position < stop; position++) {
    const byte = bytes[position] as number;
    if (byte === QUOTE || byte === BACKSLASH || byte === 0xc2 || byte === 0xe2) break;
  }
  return position;
}

/** The UTF-16 unit of the `\uXXXX` at `position`. */
function unitAt(bytes: Uint8Array, position: number): number {
  let unit = 0;
  for (let digit = position + 2; digit < position + 6; digit++)
    unit = (unit << 4) | (HEX_VALUES[bytes[digit] as number] as number);
  return unit;
}

/** Surrogates that stand alone, line ends of some clients, and controls without a short escape. */
function staysEscape(unit: number): boolean {
  if (unit < 0x20) return SHORT_CONTROLS[unit] === undefined;
  return (unit & 0xf800) === 0xd800 || unit === 0x85 || unit === 0x2028 || unit === 0x2029;
}
