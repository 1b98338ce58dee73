/** Bodies of requests: held piece by piece, within a bound for each and one for all. */
import { RequestError } from "../errors.ts";

/** The bytes that all bodies of a worker may hold together. */
export class BodyBudget {
  readonly #limit: number;
  #used = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  /** False when so many more do not fit. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.#limit) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }

  get usedBytes(): number {
    return this.#used;
  }
}

/** The bodies in flight have all the memory they may have. */
export class BodiesBusyError extends RequestError {
  readonly retryAfterSeconds = 1;

  constructor() {
    super("PENSTOCK_BODIES_BUSY", 503, "Too many bytes are being published at once; retry shortly.");
  }
}

/** One body as it comes. Holds its pieces until it is told to pass over them. */
export class Body {
  readonly #budget: BodyBudget;
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  #fault: RequestError | null = null;
  #settled = false;
  #waiter: ((done: RequestError | Buffer) => void) | null = null;
  /** Bytes that came, held or not. */
  receivedBytes = 0;
  /** True once the last byte is there. */
  complete = false;

  constructor(budget: BodyBudget, maxBytes: number) {
    this.#budget = budget;
    this.#maxBytes = maxBytes;
  }

  /** `piece` is only lent: the engine takes its memory back. True when `settle` is due. */
  push(piece: ArrayBuffer, isLast: boolean): boolean {
    this.receivedBytes += piece.byteLength;
    if (isLast) this.complete = true;
    if (this.#fault !== null) return isLast;
    if (this.receivedBytes > this.#maxBytes) return this.#fail(tooLarge(this.#maxBytes));
    if (!this.#budget.take(piece.byteLength)) return this.#fail(new BodiesBusyError());
    if (piece.byteLength > 0) {
      this.#heldBytes += piece.byteLength;
      this.#pieces.push(Buffer.from(new Uint8Array(piece)));
    }
    return isLast;
  }

  /** To be called outside the engine's callbacks: hands the body, or what is wrong with it, to whoever waits for it or will. */
  settle(): void {
    this.#settled = true;
    const waiter = this.#waiter;
    this.#waiter = null;
    waiter?.(this.#fault ?? this.#joined());
  }

  /**
   * The whole body. Rejects with RequestError 413 or 503. What it holds counts against the budget until `discard`. A client that leaves
   * before its end leaves the promise pending, to be collected with the request.
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

  /** Gives back what is held; what still comes is counted and passed over. */
  discard(): void {
    this.#fault ??= new RequestError("PENSTOCK_BAD_REQUEST", 400, "The body was passed over.");
    this.#pieces = [];
    this.#budget.give(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #fail(error: RequestError): true {
    this.discard();
    this.#fault = error;
    return true;
  }

  #joined(): Buffer {
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
  }
}

export function tooLarge(maxBytes: number): RequestError {
  return new RequestError("PENSTOCK_BODY_TOO_LARGE", 413, `The body exceeds ${maxBytes} bytes; publish in smaller batches.`);
}
