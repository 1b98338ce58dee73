/**
 * A whole world for the heart, without I/O or clock: one stream that trims, rolls back and ends, two gateways that read it, clients that
 * stall, drain and come back elsewhere. Each effect waits in a queue until the test lets it happen, so that any order can be tried.
 */

import type { Gap, HistoryPage, Position, StoredEntry } from "../../gateway/broker/broker.ts";
import { makeFilter } from "../../gateway/stream/filter.ts";
import { Run } from "../../gateway/stream/run.ts";
import type { RunHost, RunSettings } from "../../gateway/stream/run-host.ts";
import type { Sink } from "../../gateway/stream/sink.ts";
import { CLOSED, Subscriber } from "../../gateway/stream/subscriber.ts";
import { compareEventIds, type EventId, millisecondsOf } from "../../protocol/event-id.ts";

export interface ModelEvent {
  readonly id: EventId;
  /** Counts publishes over the whole history of the world, lost ones too; -1 for an end. */
  readonly n: number;
  readonly kind: string;
  readonly entry: StoredEntry;
}

/** What a client saw, in order. */
export type Seen =
  | { readonly what: "event"; readonly id: EventId; readonly n: number }
  | { readonly what: "cursor"; readonly id: EventId }
  | { readonly what: "gap"; readonly gap: Gap; readonly published: number; readonly fromGone: boolean }
  | { readonly what: "end" }
  | { readonly what: "open"; readonly position: EventId | null };

export class ModelStream {
  now = 1_000_000;
  /** Entries of the present branch, trimmed ones included. */
  log: ModelEvent[] = [];
  kept = 0;
  published = 0;
  rollbacks = 0;
  /** Clock of the broker, which can jump back. */
  clock = 1_000_000;
  readonly everTrimmed = new Set<number>();
  #last: EventId = "0-0";

  publish(kind: string): void {
    const n = this.published++;
    const event = {
      pipeline_run_id: "run",
      step_run_id: null,
      step_name: null,
      kind,
      correlation_id: null,
      index: n,
      payload: {},
    };
    this.#add(n, kind, `{"type":"event","event":${JSON.stringify(event)}}`);
  }

  end(): void {
    this.#add(-1, "", '{"type":"end"}');
  }

  trim(keep: number): void {
    const kept = Math.max(this.kept, this.log.length - keep);
    for (let index = this.kept; index < kept; index++) this.everTrimmed.add(this.log[index]!.n);
    this.kept = kept;
  }

  /** Loses the last `count` entries, as a failover does, and lets the clock fall behind. */
  rollBack(count: number, clockBehindMs: number): void {
    if (count === 0 || this.log.length - this.kept < count) return;
    this.log = this.log.slice(0, this.log.length - count);
    this.rollbacks++;
    this.#last = this.log.at(-1)?.id ?? "0-0";
    this.clock = Math.max(millisecondsOf(this.#last) + 1, this.clock - clockBehindMs);
  }

  get newest(): EventId | null {
    return this.log.at(-1)?.id ?? null;
  }

  isKept(id: EventId): boolean {
    return this.log.slice(this.kept).some((event) => event.id === id);
  }

  /** What a broker must answer, with all knowledge that Redis has too. */
  page(position: Position | null, limit: number): HistoryPage {
    const kept = this.log.slice(this.kept);
    const newest = this.newest;
    const behind = position === null ? kept : kept.filter((event) => compareEventIds(event.id, position.id) > 0);
    const entries = behind.slice(0, limit);
    const last = entries.at(-1);
    let gap: Gap | null = null;
    let next: Position | null = last === undefined ? position : { id: last.id, exact: true };
    if (last === undefined && position === null && newest !== null) next = { id: newest, exact: true };
    if (position !== null && !kept.some((event) => event.id === position.id) && position.id !== newest) {
      const to = entries[0]?.id ?? null;
      if (newest === null || compareEventIds(position.id, newest) > 0) {
        gap = { reason: newest === null ? "retention" : "rollback", from: position.id, to: null, missed: null };
        next = newest === null ? null : { id: newest, exact: true };
      } else if (kept.length === 0 || compareEventIds(position.id, kept[0]!.id) < 0) {
        if (position.exact || this.kept > 0) gap = { reason: "retention", from: position.id, to, missed: null };
        if (last === undefined) next = { id: newest, exact: true };
      } else if (position.exact) {
        gap = { reason: "rollback", from: position.id, to, missed: null };
      }
    }
    return {
      gap,
      entries: entries.map((event) => event.entry),
      next,
      atHead: entries.length === behind.length,
      newest,
      endedId: null,
    };
  }

  #add(n: number, kind: string, payload: string): void {
    this.clock++;
    const milliseconds = Math.max(this.clock, millisecondsOf(this.#last) + 1);
    // A new branch never gives out an id of the lost one: that would need the same millisecond and sequence, and nobody could tell.
    const id = `${milliseconds}-${this.rollbacks}`;
    this.#last = id;
    this.log.push({ id, n, kind, entry: { id, payload: Buffer.from(payload) } });
  }
}

/** One gateway with one run: the reader, the page reads under way, and what waits to be done. */
export class ModelGateway implements RunHost {
  readonly stream: ModelStream;
  run: Run;
  readonly #settings: RunSettings;
  #cursor: EventId | null = null;
  #started = false;
  /** Branch that the reader knows. */
  #rollbacks = 0;
  readonly pageReads: { position: Position | null; limit: number }[] = [];
  readonly toServe: Subscriber[] = [];
  flushDue: number | null = null;
  readonly counters = {
    delivered() {},
    replayed() {},
    heartbeat() {},
    gap() {},
    resumed() {},
    backpressure() {},
    unknownEntry() {},
    lag() {},
  };

  constructor(stream: ModelStream, settings: RunSettings) {
    this.stream = stream;
    this.#settings = settings;
    this.run = new Run("run", settings, this, () => stream.now);
  }

  /** The reader looks at the stream once. */
  read(tailEntries: number): void {
    const { stream, run } = this;
    const kept = stream.log.slice(stream.kept);
    if (!this.#started) {
      this.#started = true;
      this.#rollbacks = stream.rollbacks;
      const entries = kept.slice(-tailEntries);
      const complete = entries.length === stream.log.length;
      const after = complete || entries.length === kept.length ? null : kept[kept.length - entries.length - 1]!.id;
      this.#cursor = stream.newest;
      run.onTail({ entries: entries.map((event) => event.entry), complete, after, newest: stream.newest, endedId: null });
      return;
    }
    if (
      this.#rollbacks !== stream.rollbacks &&
      (this.#cursor === null || !stream.log.some((event) => event.id === this.#cursor))
    ) {
      this.#rollbacks = stream.rollbacks;
      let common = kept.length - 1;
      while (common >= 0 && !run.hasSeen(kept[common]!.id)) common--;
      const above = kept.slice(common + 1);
      if (this.#cursor !== null) {
        const gap: Gap = { reason: "rollback", from: this.#cursor, to: above[0]?.id ?? null, missed: null };
        run.onGap(gap, stream.newest);
      }
      if (above.length > 0) run.onEntries(above.map((event) => event.entry));
      this.#cursor = stream.newest;
      return;
    }
    this.#rollbacks = stream.rollbacks;
    const cursor = this.#cursor;
    const behind = cursor === null ? stream.log : stream.log.filter((event) => compareEventIds(event.id, cursor) > 0);
    if (behind.length === 0) return;
    const readable = behind.filter((event) => stream.isKept(event.id));
    const missed = behind.length - readable.length;
    this.#cursor = stream.newest;
    if (missed > 0) run.onGap({ reason: "retention", from: cursor, to: readable[0]?.id ?? null, missed }, stream.newest);
    if (readable.length > 0) run.onEntries(readable.map((event) => event.entry));
  }

  answerPage(): void {
    const read = this.pageReads.shift();
    if (read !== undefined) this.run.pageRead(read.position, this.stream.page(read.position, read.limit));
  }

  failPage(): void {
    const read = this.pageReads.shift();
    if (read !== undefined) this.run.pageFailed(read.position);
  }

  serveOne(): void {
    const subscriber = this.toServe.shift();
    if (subscriber === undefined) return;
    subscriber.queued = false;
    subscriber.run.serve(subscriber, this.stream.now);
  }

  flush(limit: number): void {
    if (this.flushDue === null || this.flushDue > this.stream.now) return;
    this.flushDue = null;
    if (!this.run.flush(this.stream.now, limit)) this.flushDue = this.stream.now;
  }

  tend(): void {
    for (const subscriber of [...this.run.subscribers]) this.run.tend(subscriber, this.stream.now);
  }

  /** Everybody has left for long enough: reader and ring go. */
  forget(): void {
    if (this.run.subscribers.length > 0) return;
    this.run = new Run("run", this.#settings, this, () => this.stream.now);
    this.#started = false;
    this.#cursor = null;
    this.pageReads.length = 0;
    this.toServe.length = 0;
    this.flushDue = null;
  }

  readPage(_run: Run, position: Position | null, limit: number): void {
    this.pageReads.push({ position, limit });
  }
  findTail(subscriber: Subscriber, count: number): void {
    const kept = this.stream.log.slice(this.stream.kept);
    const before = kept[kept.length - count - 1];
    subscriber.run.tailFound(subscriber, before === undefined ? null : { id: before.id, exact: true });
  }
  flushAt(run: Run, at: number): void {
    if (run === this.run) this.flushDue = Math.min(this.flushDue ?? at, at);
  }
  serveSoon(subscriber: Subscriber): void {
    if (subscriber.queued) return;
    subscriber.queued = true;
    this.toServe.push(subscriber);
  }
  retryPagesLater(run: Run): void {
    this.retries.push(run);
  }
  readonly retries: Run[] = [];
  markEnded(): void {}
  clearEnded(): void {}
  closed(): void {}
  ringChanged(): void {}
  wallNow(): number {
    return this.stream.now;
  }
  retryMs(): number {
    return 1_500;
  }
}

/** A reader that keeps its last id and comes back with it. */
export class ModelClient {
  readonly seen: Seen[] = [];
  readonly kinds: string[];
  lastId: EventId | null = null;
  gateway: ModelGateway | null = null;
  #subscriber: Subscriber | null = null;
  readonly #stream: ModelStream;
  /** Writes that the socket still takes before it is full. */
  room = Number.POSITIVE_INFINITY;
  ended = false;

  constructor(stream: ModelStream, kinds: string[]) {
    this.#stream = stream;
    this.kinds = kinds;
  }

  get connected(): boolean {
    return this.#subscriber !== null && this.#subscriber.state !== CLOSED;
  }

  connect(gateway: ModelGateway): void {
    if (this.connected || this.ended) return;
    this.gateway = gateway;
    this.seen.push({ what: "open", position: this.lastId });
    const sink: Sink = {
      write: (bytes) => {
        this.#take(bytes);
        this.room--;
        return this.room > 0;
      },
      end: (last) => {
        if (last !== null) this.#take(last);
      },
      abort() {},
    };
    const position = this.lastId === null ? null : { id: this.lastId, exact: true };
    this.#subscriber = new Subscriber(gateway.run, sink, makeFilter(this.kinds, [], []), position, null, null, this.#stream.now);
    gateway.run.join(this.#subscriber);
  }

  disconnect(): void {
    if (!this.connected) return;
    this.#subscriber!.run.remove(this.#subscriber!, "client");
    this.#subscriber = null;
  }

  drain(room: number): void {
    this.room = room;
    if (this.connected) this.#subscriber!.run.drained(this.#subscriber!);
  }

  #take(bytes: Uint8Array): void {
    for (const block of Buffer.from(bytes).toString().split("\n\n")) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      const event = field("event");
      const id = field("id");
      if (id !== undefined) this.lastId = id;
      if (event === undefined) continue;
      const data = JSON.parse(field("data")!);
      if (event === "end") {
        this.seen.push({ what: "end" });
        this.ended = true;
      } else if (event === "gap") {
        const fromGone = data.from === null || !this.#stream.isKept(data.from);
        this.seen.push({ what: "gap", gap: data, published: this.#stream.published, fromGone });
      } else if (event === "cursor") {
        this.seen.push({ what: "cursor", id: id! });
      } else {
        this.seen.push({ what: "event", id: id!, n: data.index });
      }
    }
  }
}
