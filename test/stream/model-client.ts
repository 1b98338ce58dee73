/** A reader of the model: keeps its last id and comes back with it, loses what was on its way when its connection goes. */
import type { Gap, Position } from "../../gateway/broker/broker.ts";
import { makeFilter } from "../../gateway/stream/filter.ts";
import type { Sink } from "../../gateway/stream/sink.ts";
import { CLOSED, HISTORY, Subscriber, WAITING } from "../../gateway/stream/subscriber.ts";
import type { EventId } from "../../protocol/event-id.ts";
import type { ModelGateway } from "./model-gateway.ts";
import type { ModelStream } from "./model-stream.ts";

/** What a client saw, in order; `step` and `published` are those of the world when it was sent. */
export type Seen = SeenItem & { readonly step: number; readonly published: number };
type SeenItem =
  | { readonly what: "event"; readonly id: EventId; readonly n: number }
  | { readonly what: "cursor"; readonly id: EventId }
  | { readonly what: "gap"; readonly gap: Gap; readonly fromIsGone: boolean }
  | { readonly what: "end" }
  /** `fresh`: without an id of its own. */
  | { readonly what: "open"; readonly position: EventId | null; readonly fresh: boolean };

export interface ClientOptions {
  readonly kinds: readonly string[];
  readonly since: EventId | null;
  readonly tail: number | null;
}

export class ModelClient {
  readonly seen: Seen[] = [];
  readonly options: ClientOptions;
  lastId: EventId | null = null;
  ended = false;
  /** Step at which the stream last opened without an id was given its place, and events published by then. */
  placed: { readonly step: number; readonly published: number } | null = null;
  /** Writes that the socket still takes before it is full. */
  #room = Number.POSITIVE_INFINITY;
  #subscriber: Subscriber | null = null;
  /** Sent, but not read by the client yet. */
  #inFlight: Seen[] = [];
  #unfinished = "";
  readonly #stream: ModelStream;

  constructor(stream: ModelStream, options: ClientOptions) {
    this.#stream = stream;
    this.options = options;
  }

  get connected(): boolean {
    return this.#subscriber !== null && this.#subscriber.state !== CLOSED;
  }

  get subscriber(): Subscriber | null {
    return this.#subscriber;
  }

  connect(gateway: ModelGateway): void {
    if (this.connected || this.ended) return;
    this.#receive();
    if (this.ended) return;
    const { kinds, since, tail } = this.options;
    const fresh = this.lastId === null;
    if (fresh) this.placed = null;
    this.#note({ what: "open", position: this.lastId ?? since, fresh });
    const sink: Sink = {
      write: (bytes) => {
        this.#take(bytes);
        this.#room--;
        return this.#room > 0;
      },
      end: (last) => {
        if (last !== null) this.#take(last);
      },
      abort() {},
    };
    let position: Position | null = null;
    if (this.lastId !== null) position = { id: this.lastId, exact: true };
    else if (since !== null) position = { id: since, exact: false };
    const begin = position === null ? tail : null;
    this.#unfinished = "";
    this.#subscriber = new Subscriber(gateway.run, sink, makeFilter(kinds, [], []), position, begin, null, this.#stream.now);
    gateway.run.join(this.#subscriber);
  }

  /** The connection goes, and with it the last frames that were on their way. */
  disconnect(losesFrames: number): void {
    if (!this.connected) return;
    this.#subscriber!.run.remove(this.#subscriber!, "client");
    this.#subscriber = null;
    this.#inFlight.splice(Math.max(0, this.#inFlight.length - losesFrames));
    this.#receive();
  }

  drain(room: number): void {
    this.#room = room;
    this.#receive();
    if (this.connected) this.#subscriber!.run.drained(this.#subscriber!);
  }

  /** To be called after every step. */
  look(): void {
    const subscriber = this.#subscriber;
    if (this.placed !== null || subscriber === null || subscriber.state === WAITING) return;
    if (subscriber.state === HISTORY && subscriber.page === null && subscriber.lastId === null) return;
    this.placed = { step: this.#stream.step, published: this.#stream.published };
  }

  #receive(): void {
    for (const item of this.#inFlight.splice(0)) {
      this.seen.push(item);
      if (item.what === "end") this.ended = true;
      else if (item.what !== "gap" && item.what !== "open") this.lastId = item.id;
    }
  }

  #note(item: SeenItem): void {
    this.#inFlight.push({ ...item, step: this.#stream.step, published: this.#stream.published });
  }

  #take(bytes: Uint8Array): void {
    const blocks = (this.#unfinished + Buffer.from(bytes).toString()).split("\n\n");
    this.#unfinished = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      const event = field("event");
      const id = field("id")!;
      if (event === undefined) continue;
      const data = JSON.parse(field("data")!);
      if (event === "end") this.#note({ what: "end" });
      else if (event === "cursor") this.#note({ what: "cursor", id });
      else if (event === "gap") {
        const fromIsGone = data.from === null || !this.#stream.isKept(data.from);
        this.#note({ what: "gap", gap: data, fromIsGone });
      } else this.#note({ what: "event", id, n: data.index });
    }
  }
}
