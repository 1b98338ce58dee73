/** Where a socket reads to: one block after the other, filled from front to end, so that what a read brought stays as it is. */
import type { OnReadOpts } from "node:net";

/** Blocks are as large as this; one is held as long as anything of it is. */
const BLOCK_BYTES = 64 * 1024;
/** Most reads bring less: what is left of a block is used up to here. */
const LEAST_BYTES = 16 * 1024;

export class ReadBuffer implements OnReadOpts {
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #filled = 0;
  readonly #take: (chunk: Buffer) => void;

  constructor(take: (chunk: Buffer) => void) {
    this.#take = take;
  }

  /** Asked for before each read. */
  readonly buffer = (): Uint8Array => {
    if (BLOCK_BYTES - this.#filled < LEAST_BYTES) {
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#filled = 0;
    }
    return this.#block.subarray(this.#filled);
  };

  /** True: go on reading. */
  readonly callback = (bytes: number): boolean => {
    const from = this.#filled;
    this.#filled += bytes;
    this.#take(this.#block.subarray(from, this.#filled));
    return true;
  };
}
