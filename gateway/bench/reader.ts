/** One connection that reads a run and judges what it gets. */
import { connect, isIP, type Socket } from "node:net";
import type { RecordableHistogram } from "node:perf_hooks";
import { connect as connectTls } from "node:tls";
import type { BenchRun } from "./bench-run.ts";
import type { BenchTarget } from "./bench-target.ts";
import { FrameDecoder, type FrameSink } from "./frame-decoder.ts";
import type { Judge } from "./judge.ts";
import { ResponseDecoder, type ResponseSink } from "./response-decoder.ts";

/** What a reader tells, and where its numbers go. */
export interface ReaderOwner {
  /** Microseconds from an event's send time to its arrival. */
  readonly latency: RecordableHistogram;
  /** The answer is 200, `micros` after the connect began. */
  opened(reader: Reader, micros: number): void;
  /** Another answer, with its body; or none, with status 0 and why. */
  refused(reader: Reader, status: number, text: string): void;
  /** The stream is over: its body has ended (`isClean`), or it was cut. */
  closed(reader: Reader, isClean: boolean): void;
  /** Events have come. */
  advanced(reader: Reader): void;
}

export type ReaderState = "opening" | "open" | "refused" | "closed";

/** All readers share it: what a read brings is looked at before the next one. */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536);
const MAX_REFUSAL_BYTES = 4_096;

export class Reader implements ResponseSink, FrameSink {
  readonly run: BenchRun;
  readonly judge: Judge;
  /** `performance.now()` when the connect began. */
  readonly began = performance.now();
  state: ReaderState = "opening";
  /** It does not read, or is catching up: its latency would be its own fault. */
  isStalled = false;
  readonly #owner: ReaderOwner;
  readonly #socket: Socket;
  readonly #response: ResponseDecoder;
  readonly #frames: FrameDecoder;
  #status = 0;
  #refusal = "";
  #failure = "the connection was closed without an answer";
  /** When the bytes at hand came, in microseconds. */
  #now = 0;

  constructor(owner: ReaderOwner, judge: Judge, run: BenchRun, target: BenchTarget, localAddress: string | undefined) {
    this.#owner = owner;
    this.judge = judge;
    this.run = run;
    this.#response = new ResponseDecoder(this);
    this.#frames = new FrameDecoder(this, run.spelling);
    const { host, port } = target;
    const from = localAddress === undefined ? {} : { localAddress };
    if (target.secure) {
      this.#socket = connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) });
      this.#socket.on("data", (data: Buffer) => this.#read(data, data.length));
    } else {
      const callback = (length: number, buffer: Uint8Array): boolean => {
        this.#read(buffer as Buffer, length);
        return true;
      };
      this.#socket = connect({ host, port, ...from, onread: { buffer: READ_BUFFER, callback } });
    }
    this.#socket.on("error", (error) => {
      this.#failure = error.message;
    });
    this.#socket.on("close", () => this.#over());
    this.#socket.write(run.request);
  }

  /** Stops reading; the kernel's buffers fill, then the gateway's socket. */
  stall(): void {
    this.isStalled = true;
    this.#socket.pause();
  }

  wake(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
  }

  head(status: number): void {
    this.#status = status;
    if (status !== 200) return;
    this.state = "open";
    this.#owner.opened(this, (performance.now() - this.began) * 1_000);
  }

  body(buffer: Buffer, start: number, end: number): void {
    if (this.state === "open") this.#frames.feed(buffer, start, end);
    else if (this.#refusal.length < MAX_REFUSAL_BYTES) this.#refusal += buffer.toString("utf8", start, end);
  }

  done(): void {
    this.#over();
    this.#socket.destroy();
  }

  malformed(what: string): void {
    this.#failure = what;
    if (this.state === "open") this.judge.unreadable(what);
    this.#socket.destroy();
  }

  event(milliseconds: number, sequence: number, n: number, sentMicros: number): void {
    this.judge.event(milliseconds, sequence, n);
    if (!this.isStalled) this.#owner.latency.record(Math.max(1, Math.round(this.#now - sentMicros)));
  }

  frame(name: string, milliseconds: number, sequence: number, data: string): void {
    this.judge.frame(name, milliseconds, sequence, data);
  }

  unreadable(what: string): void {
    this.judge.unreadable(what);
  }

  #read(buffer: Buffer, length: number): void {
    const { judge } = this;
    const before = judge.next;
    this.#now = performance.now() * 1_000;
    this.#response.feed(buffer, 0, length);
    if (judge.next !== before) this.#owner.advanced(this);
  }

  #over(): void {
    const { state } = this;
    if (state === "open") {
      this.state = "closed";
      this.#owner.closed(this, this.#response.close());
    } else if (state === "opening") {
      this.state = "refused";
      this.#response.close();
      if (this.#status === 0) this.#owner.refused(this, 0, this.#failure);
      else this.#owner.refused(this, this.#status, this.#refusal);
    }
  }
}
