/** One stream, one gateway and readers opened by hand, for what happens in a certain order. */
import type { Position } from "../../gateway/broker/broker.ts";
import { makeFilter } from "../../gateway/stream/filter.ts";
import type { RunSettings } from "../../gateway/stream/run-host.ts";
import type { Sink } from "../../gateway/stream/sink.ts";
import { Subscriber } from "../../gateway/stream/subscriber.ts";
import { ModelGateway } from "./model-gateway.ts";
import { ModelStream } from "./model-stream.ts";

export const SETTINGS: RunSettings = {
  ringEvents: 64,
  ringBytes: 1_000_000,
  coalesceMs: 10,
  slowConsumer: "replay",
  pageEntries: 256,
  heartbeatMs: 30_000,
  stallMs: 30_000,
};

/** One reader with the bytes that it got. */
export class Reader implements Sink {
  readonly writes: string[] = [];
  takes = true;
  aborted = false;
  ended = false;
  subscriber!: Subscriber;

  write(frames: Uint8Array): boolean {
    this.writes.push(Buffer.from(frames).toString());
    return this.takes;
  }
  end(last: Uint8Array | null): void {
    if (last !== null) this.writes.push(Buffer.from(last).toString());
    this.ended = true;
  }
  abort(): void {
    this.aborted = true;
  }
  /** What came since the last call. */
  take(): string {
    return this.writes.splice(0).join("");
  }
}

export interface OpenOptions {
  readonly kinds?: string[];
  readonly position?: Position;
  readonly tail?: number;
  readonly expiresAt?: number;
}

export class Harness {
  readonly stream = new ModelStream();
  readonly gateway: ModelGateway;
  /** Entries with which the watch begins. */
  readonly tailEntries: number;

  constructor(settings: Partial<RunSettings> = {}, tailEntries = 64) {
    this.gateway = new ModelGateway(this.stream, { ...SETTINGS, ...settings });
    this.tailEntries = tailEntries;
  }

  /** Opens a reader and lets it come to rest. */
  open(options: OpenOptions = {}): Reader {
    const reader = this.join(options);
    this.settle();
    return reader;
  }

  /** Opens a reader that has not been served yet. */
  join({ kinds = [], position, tail, expiresAt }: OpenOptions = {}): Reader {
    const { run } = this.gateway;
    const reader = new Reader();
    const filter = makeFilter(kinds, [], []);
    const { now } = this.stream;
    reader.subscriber = new Subscriber(run, reader, filter, position ?? null, tail ?? null, expiresAt ?? null, now);
    run.join(reader.subscriber);
    return reader;
  }

  /** Lets everything happen that is due now. */
  settle(): void {
    for (let round = 0; round < 5; round++) {
      this.gateway.read(this.tailEntries);
      this.work();
    }
  }

  /** As `settle`, but the reader does not look: the ring lags behind what the broker tells. */
  work(): void {
    const { gateway } = this;
    while (gateway.tailReads.length > 0) gateway.answerTail(false);
    while (gateway.pageReads.length > 0) gateway.answerPage();
    this.serve();
    gateway.flush(1_000);
    this.serve();
  }

  serve(): void {
    while (this.gateway.toServe.length > 0) this.gateway.serveOne();
  }

  pass(ms: number): void {
    this.stream.now += ms;
    this.stream.clock += ms;
    this.settle();
  }

  drain(reader: Reader): void {
    reader.takes = true;
    this.gateway.run.drained(reader.subscriber);
    this.settle();
  }

  publish(...kinds: string[]): void {
    for (const kind of kinds) this.stream.publish(kind);
  }

  /** The position of a client that has got the event published as the n-th. */
  held(n: number): Position {
    return { id: this.stream.everything[n]!.id, exact: true };
  }
}

/** Names of the frames, in order. */
export function kindsIn(text: string): string[] {
  return [...text.matchAll(/^event: (.*)$/gm)].map((match) => match[1]!);
}

/** `k0` to `k<count - 1>`, or from another number on. */
export function numbered(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, n) => `k${n + from}`);
}
