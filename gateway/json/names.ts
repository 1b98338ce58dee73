/** Finds which of a few known names a member has, without making a string of it. */
import { readText } from "./text.ts";

export class NameTable {
  readonly #names: readonly Uint8Array[];
  readonly #longest: number;

  /** Plain ASCII names. */
  constructor(names: readonly string[]) {
    this.#names = names.map((name) => Buffer.from(name, "latin1"));
    this.#longest = Math.max(...names.map((name) => name.length));
  }

  /** The number of the name that lies between its quotes at `start … end`, in the order of the table; -1 when it is another. */
  find(bytes: Buffer, start: number, end: number): number {
    const length = end - start;
    for (let n = 0; n < this.#names.length; n++) {
      const name = this.#names[n] as Uint8Array;
      if (name.length === length && startsWith(bytes, start, name)) return n;
    }
    return this.#findEscaped(bytes, start, end);
  }

  /** A name may be written with escapes, six bytes a character at most. */
  #findEscaped(bytes: Buffer, start: number, end: number): number {
    if (end - start > this.#longest * 6 || !hasEscape(bytes, start, end)) return -1;
    const text = readText(bytes, start - 1, end + 1);
    return this.#names.findIndex((name) => Buffer.from(text).equals(name));
  }
}

function startsWith(bytes: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let n = 0; n < name.length; n++) if (bytes[start + n] !== name[n]) return false;
  return true;
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let position = start; position < end; position++) if (bytes[position] === BACKSLASH) return true;
  return false;
}

const BACKSLASH = 0x5c;
