/**
 * Lines on their way to a descriptor. Written beside the event loop: a reader of stdout that stops must neither stop the gateway nor
 * fill its memory, and one that has gone must not keep it from leaving.
 */
import { write, writeSync } from "node:fs";

/** What waits for a reader that has stopped, in characters; lines beyond it are lost. */
const MAX_WAITING = 4 * 1024 * 1024;
/** Written at once: what a pipe takes whole, between the lines of the other processes that write to it (pipe(7): PIPE_BUF). */
const WHOLE_BYTES = 4_096;
const AGAIN_MS = 100;
/** A reader that has not taken what there is in this time will not. */
const STUCK_MS = 1_000;

export class LogOutput {
  readonly #descriptor: number;
  readonly #shape: (line: string) => string;
  #waiting: string[] = [];
  #waitingLength = 0;
  #writingSince: number | null = null;
  #readerIsGone = false;
  #lostLines = 0;
  #flushed: (() => void)[] = [];
  /** Hears of lines that were lost, when the reader takes some again. */
  lost: (lines: number) => void = () => {};

  /** `shape` makes of each line what is written. */
  constructor(descriptor: number, shape: (line: string) => string) {
    this.#descriptor = descriptor;
    this.#shape = shape;
  }

  write(json: string): void {
    if (this.#readerIsGone) return;
    const line = this.#shape(json);
    if (this.#waitingLength + line.length > MAX_WAITING) {
      this.#lostLines++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#writingSince === null) this.#writeOn();
  }

  /** Calls `done` when everything is written or nobody is there to read it, with an error when the reader does not take it. */
  flush(done: (error?: Error) => void): void {
    if (this.#writingSince === null) {
      done();
      return;
    }
    const limit = setTimeout(() => done(new Error("stdout takes nothing")), STUCK_MS);
    this.#flushed.push(() => {
      clearTimeout(limit);
      done();
    });
  }

  /** For the last words of a process that dies: pino calls it at `fatal`. */
  flushSync(): void {
    if (this.#writingSince !== null && performance.now() - this.#writingSince > STUCK_MS) return;
    writeSync(this.#descriptor, this.#take());
  }

  #writeOn(): void {
    if (this.#waiting.length > 0) {
      this.#writingSince = performance.now();
      this.#writeAll(Buffer.from(this.#takeWhole()));
      return;
    }
    this.#writingSince = null;
    for (const done of this.#flushed.splice(0)) done();
  }

  #writeAll(bytes: Buffer): void {
    write(this.#descriptor, bytes, (error, count) => {
      if (error === null && count < bytes.length) this.#writeAll(bytes.subarray(count));
      else if (error?.code === "EAGAIN") setTimeout(() => this.#writeAll(bytes), AGAIN_MS);
      else this.#wrote(error);
    });
  }

  #wrote(error: NodeJS.ErrnoException | null): void {
    if (error?.code === "EPIPE") {
      this.#readerIsGone = true;
      this.#take();
    } else if (error !== null) {
      // A full disk, for one: what comes later may have room again.
      this.#lostLines++;
    } else if (this.#lostLines > 0) {
      const lines = this.#lostLines;
      this.#lostLines = 0;
      this.lost(lines);
    }
    this.#writeOn();
  }

  /** As many lines as a pipe takes whole; one that is longer by itself. */
  #takeWhole(): string {
    let bytes = 0;
    let lines = 0;
    for (; lines < this.#waiting.length; lines++) {
      bytes += Buffer.byteLength(this.#waiting[lines]!);
      if (bytes > WHOLE_BYTES && lines > 0) break;
    }
    const text = this.#waiting.splice(0, lines).join("");
    this.#waitingLength -= text.length;
    return text;
  }

  #take(): string {
    const text = this.#waiting.join("");
    this.#waiting = [];
    this.#waitingLength = 0;
    return text;
  }
}
