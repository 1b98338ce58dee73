/** Bodies of requests: gathered as they come, within a bound of their own and one for all. */
import { RequestError } from "../errors.ts";
import { type ByteBudget, BytesBusyError } from "./byte-budget.ts";

/** Blocks double up to this size. */
const MAX_BLOCK_BYTES = 1024 * 1024;

/** One body as it comes. Holds it until it is told to pass over it, or until whoever read it lets go. */
export class Body {
  readonly #budget: ByteBudget;
  readonly #maxBytes: number;
  /** All full but the last. A body may come byte by byte: a Buffer for each would cost a hundred times as much. */
  #blocks: Buffer[] = [];
  #roomInLast = 0;
  #heldBytes = 0;
  #fault: RequestError | null = null;
  /** What comes is not held any more. */
  #isPassedOver = false;
  #settled = false;
  #handedOver = false;
  #waiter: ((done: RequestError | Buffer) => void) | null = null;
  /** Bytes that came, held or not. */
  receivedBytes = 0;
  /** True once the last byte is there. */
  complete = false;

  constructor(budget: ByteBudget, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  /** `piece` is only lent: the engine takes its memory back. True when `settle` is due. */
  push(piece: ArrayBuffer, isLast: boolean): boolean {
    this.receivedBytes += piece.byteLength;
    if (isLast) this.complete = true;
    if (this.#isPassedOver) return isLast;
    if (this.receivedBytes > this.#maxBytes) return this.#fail(tooLarge(this.#maxBytes));
    if (!this.#hold(new Uint8Array(piece))) return this.#fail(new BytesBusyError());
    return isLast;
  }

  /** To be called outside the engine's callbacks: hands the body, or what is wrong with it, to whoever waits for it or will. */
  settle(): void {
    this.#settled = true;
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter === null) return;
    if (this.#isPassedOver) waiter(this.#fault ?? new RequestError("PENSTOCK_BAD_REQUEST", 400, "The body was passed over."));
    else waiter(this.#handOver());
  }

  /** True when `settle` has something to say. */
  get isDecided(): boolean {
    return this.complete || this.#fault !== null;
  }

  /** The whole body if it is there, as most are when they are asked for; else null, and `read` tells of it. As `read` in all else. */
  readNow(): Buffer | null {
    return this.#settled && !this.#isPassedOver ? this.#handOver() : null;
  }

  /**
   * The whole body. Rejects with RequestError 413 or 503. What it holds counts against the budget until `release`, which its reader
   * must call, even when the client leaves meanwhile. A client that leaves before its end leaves the promise pending, to be collected
   * with the request.
   */
  read(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#waiter = (done) => {
        if (done instanceof RequestError) reject(done);
        else resolve(done);
      };
      if (this.#settled) this.settle();
    });
  }

  /** What still comes is counted and passed over; what is held is given back, unless somebody has read it. */
  discard(): void {
    this.#isPassedOver = true;
    if (!this.#handedOver) this.release();
  }

  /** Whoever has read it needs it no more. */
  release(): void {
    this.#blocks = [];
    this.#budget.give(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #hold(piece: Uint8Array): boolean {
    const fitting = Math.min(piece.length, this.#roomInLast);
    if (fitting > 0) {
      const last = this.#blocks.at(-1)!;
      last.set(piece.subarray(0, fitting), last.length - this.#roomInLast);
      this.#roomInLast -= fitting;
    }
    const left = piece.length - fitting;
    if (left === 0) return true;
    // Most bodies come in one piece, and have a block of just their size.
    const blockBytes = Math.max(left, Math.min(this.#heldBytes, MAX_BLOCK_BYTES));
    if (!this.#budget.take(blockBytes)) return false;
    this.#heldBytes += blockBytes;
    const block = Buffer.allocUnsafe(blockBytes);
    block.set(piece.subarray(fitting));
    this.#blocks.push(block);
    this.#roomInLast = blockBytes - left;
    return true;
  }

  #fail(error: RequestError): true {
    this.discard();
    this.#fault = error;
    return true;
  }

  #handOver(): Buffer {
    const blocks = this.#blocks;
    this.#blocks = [];
    this.#handedOver = true;
    return blocks.length === 1 && this.#roomInLast === 0 ? blocks[0]! : Buffer.concat(blocks, this.receivedBytes);
  }
}

export function tooLarge(maxBytes: number): RequestError {
  return new RequestError("PENSTOCK_BODY_TOO_LARGE", 413, `The body exceeds ${maxBytes} bytes; publish in smaller batches.`);
}
