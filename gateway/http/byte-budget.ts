/** How much memory bodies may take: of requests while they come, of long answers while they go. */
import { RequestError } from "../errors.ts";

/** The bytes that all bodies of a worker may hold together, in one direction. */
export class ByteBudget {
  readonly #fullBytes: number;
  #limit: number;
  #used = 0;

  constructor(limitBytes: number) {
    this.#fullBytes = limitBytes;
    this.#limit = limitBytes;
  }

  /** Less from now on, null for all that there was: what is held stays. */
  holdBackTo(bytes: number | null): void {
    this.#limit = Math.min(this.#fullBytes, bytes ?? this.#fullBytes);
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

/** The bodies on their way have all the memory that they may have. */
export class BytesBusyError extends RequestError {
  readonly retryAfterSeconds = 1;

  constructor() {
    super("PENSTOCK_BODIES_BUSY", 503, "Too many bytes are on their way at once; retry shortly.");
  }
}
