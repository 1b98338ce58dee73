/** One gateway of the model with one run: its reader, the reads under way, and all that waits until the test lets it happen. */
import type { Gap, HistoryPage, Position } from "../../gateway/broker/broker.ts";
import { Run } from "../../gateway/stream/run.ts";
import type { RunHost, RunSettings } from "../../gateway/stream/run-host.ts";
import { CLOSED, type Subscriber } from "../../gateway/stream/subscriber.ts";
import { tend } from "../../gateway/stream/tending.ts";
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import type { ModelEvent, ModelStream } from "./model-stream.ts";

interface PageRead {
  readonly run: Run;
  readonly position: Position | null;
  readonly limit: number;
  /** What the broker has said; it may be old news when it comes. */
  answer: HistoryPage | null;
}

interface TailRead {
  readonly subscriber: Subscriber;
  readonly count: number;
}

export class ModelGateway implements RunHost {
  readonly stream: ModelStream;
  run: Run;
  readonly pageReads: PageRead[] = [];
  readonly tailReads: TailRead[] = [];
  readonly toServe: Subscriber[] = [];
  readonly retries: Run[] = [];
  flushDue: number | null = null;
  /** Streams closed; each once. */
  readonly closings = new Set<Subscriber>();
  readonly counters = {
    delivered() {},
    replayed() {},
    heartbeat() {},
    gap() {},
    resumed() {},
    backpressure() {},
    unknownEntry() {},
    lag(_milliseconds: number): void {},
  };
  readonly #settings: RunSettings;
  #reader: ModelReader;

  constructor(stream: ModelStream, settings: RunSettings) {
    this.stream = stream;
    this.#settings = settings;
    this.run = new Run("run", settings, this, () => stream.now);
    this.#reader = new ModelReader(stream, this.run);
  }

  // --- what the test lets happen ---------------------------------------------------------------------------------------------

  /** The reader looks at the stream. Without a proof, entries that went before it looked are not missed yet. */
  read(tailEntries: number, proves = true): void {
    this.#reader.read(tailEntries, proves);
  }

  /** The reader cannot read, and says so. */
  goAway(): void {
    this.#reader.goAway();
  }

  comeBack(tailEntries: number): void {
    this.#reader.comeBack(tailEntries);
  }

  /** The broker answers the page asked for at `index`, but the answer is not here yet. */
  lookUp(index: number): void {
    const read = this.pageReads[index % this.pageReads.length];
    if (read !== undefined) read.answer ??= this.stream.page(read.position, read.limit);
  }

  answerPage(index = 0): void {
    if (this.pageReads.length === 0) return;
    this.lookUp(index);
    const [read] = this.pageReads.splice(index % this.pageReads.length, 1);
    read!.run.pageRead(read!.position, read!.answer!);
  }

  failPage(index = 0): void {
    const [read] = this.pageReads.splice(index % Math.max(1, this.pageReads.length), 1);
    read?.run.pageFailed(read.position);
  }

  answerTail(fails: boolean): void {
    const read = this.tailReads.shift();
    read?.subscriber.run.tailFound(read.subscriber, fails ? undefined : this.stream.findTail(read.count));
  }

  retry(): void {
    for (const run of this.retries.splice(0)) run.retryPages();
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
    this.run.flush(this.stream.now, limit);
    if (this.run.isFlushing) this.flushDue = this.stream.now;
  }

  tend(): void {
    for (const subscriber of [...this.run.subscribers.all()]) tend(subscriber, this.stream.now);
  }

  /** Everybody has left for long enough: reader and ring go. What was asked for still comes. */
  forget(): void {
    if (this.run.subscribers.size > 0) return;
    this.run = new Run("run", this.#settings, this, () => this.stream.now);
    this.#reader = new ModelReader(this.stream, this.run);
    this.flushDue = null;
  }

  /** True when nothing waits to be done now. */
  get isAtRest(): boolean {
    const waiting = this.pageReads.length + this.tailReads.length + this.toServe.length + this.retries.length;
    return waiting === 0 && (this.flushDue === null || this.flushDue > this.stream.now);
  }

  // --- RunHost ---------------------------------------------------------------------------------------------------------------

  readPage(run: Run, position: Position | null, limit: number): void {
    this.pageReads.push({ run, position, limit, answer: null });
  }
  findTail(subscriber: Subscriber, count: number): void {
    this.tailReads.push({ subscriber, count });
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
  markEnded(run: Run, endedId: EventId): void {
    if (run === this.run) this.stream.setMark(endedId);
  }
  clearEnded(run: Run): void {
    if (run === this.run) this.stream.setMark(null);
  }
  closed(subscriber: Subscriber): void {
    if (subscriber.state !== CLOSED || this.closings.has(subscriber)) throw new Error("a stream was closed twice");
    this.closings.add(subscriber);
  }
  ringChanged(): void {}
  wallNow(): number {
    return this.stream.now;
  }
  retryMs(): number {
    return 1_500;
  }
}

/** What a broker's watch does: reads on from its place, and proves now and then that nothing was lost. */
class ModelReader {
  readonly #stream: ModelStream;
  readonly #run: Run;
  #started = false;
  #away = false;
  #era = 0;
  #cursor: EventId | null = null;
  /** What was read before the key was seen to be missing. */
  #held: EventId | null = null;
  /** Entries handed over, or told to be missing. */
  #known = new Set<ModelEvent>();
  /** The cursor when nothing was missing for certain. */
  #proved: EventId | null = null;

  constructor(stream: ModelStream, run: Run) {
    this.#stream = stream;
    this.#run = run;
  }

  goAway(): void {
    if (this.#away) return;
    this.#away = true;
    this.#run.onOutage();
  }

  comeBack(tailEntries: number): void {
    if (!this.#away) return;
    this.#away = false;
    this.read(tailEntries, true);
    this.#run.onRecovered();
  }

  read(tailEntries: number, proves: boolean): void {
    if (this.#away) return;
    if (!this.#started) this.#start(tailEntries);
    else if (this.#stream.newest === null) this.#keyIsMissing();
    else if (this.#held !== null || this.#era !== this.#stream.era) this.#meetNewStream();
    else if (this.#cursor !== null && !this.#stream.has(this.#cursor)) this.#rollBack(this.#cursor);
    else this.#readOn(proves || this.#cursor === null || !this.#stream.isKept(this.#cursor));
  }

  #start(tailEntries: number): void {
    this.#started = true;
    this.#run.onTail(this.#stream.tail(tailEntries));
    this.#settleAtHead();
  }

  #readOn(proves: boolean): void {
    const unknown = this.#stream.log.filter((event) => !this.#known.has(event));
    const missing = unknown.filter((event) => event.goneAt !== null);
    const above = unknown.filter((event) => event.goneAt === null);
    if (proves && missing.length > 0) {
      // Found late: it went before the reader looked, and what came behind it has been handed over.
      const isPast = this.#cursor !== null && compareEventIds(missing.at(-1)!.id, this.#cursor) < 0;
      const to = isPast ? this.#cursor : firstBeyondMissing(unknown);
      this.#gap({ reason: "retention", from: this.#proved, to, missed: missing.length });
    }
    this.#handOver(above);
    if (proves) this.#settleAtHead();
    else this.#cursor = above.at(-1)?.id ?? this.#cursor;
  }

  #keyIsMissing(): void {
    // A key that goes when its time is over has lost nothing that was not read.
    if (this.#hasUnreadOfFormerStreams())
      this.#run.onGap({ reason: "retention", from: this.#cursor, to: null, missed: null }, null);
    this.#held = this.#cursor ?? this.#held;
    this.#era = this.#stream.era;
    this.#cursor = null;
    this.#proved = null;
    this.#known.clear();
  }

  /** Another stream under the same name; that the former one went may not have been seen. */
  #meetNewStream(): void {
    const from = this.#held ?? this.#cursor;
    const above = this.#stream.kept();
    const to = firstBeyondMissing(this.#stream.log);
    const isLower = from !== null && compareEventIds(above[0]?.id ?? this.#stream.newest!, from) <= 0;
    const isLoss = this.#cursor !== null || above.length < this.#stream.log.length || this.#hasUnreadOfFormerStreams();
    this.#known.clear();
    if (isLower) this.#gap({ reason: "rollback", from, to, missed: null });
    else if (isLoss) this.#gap({ reason: "retention", from, to, missed: null });
    this.#handOver(above);
    this.#settleAtHead();
  }

  #hasUnreadOfFormerStreams(): boolean {
    const { era, everything } = this.#stream;
    return everything.some((event) => event.era >= this.#era && event.era < era && !event.lost && !this.#known.has(event));
  }

  #rollBack(from: EventId): void {
    const kept = this.#stream.kept();
    let common = kept.length - 1;
    while (common >= 0 && !this.#run.hasSeen(kept[common]!.id)) common--;
    const above = kept.slice(common + 1);
    const past = kept[common]?.id ?? null;
    const unknown = this.#stream.log.filter((event) => past === null || compareEventIds(event.id, past) > 0);
    this.#gap({ reason: "rollback", from, to: firstBeyondMissing(unknown), missed: null });
    this.#handOver(above);
    this.#settleAtHead();
  }

  #gap(gap: Gap): void {
    if (gap.reason === "rollback") this.#stream.rolledBackAt = this.#stream.step;
    this.#run.onGap(gap, this.#stream.newest);
  }

  #handOver(events: readonly ModelEvent[]): void {
    if (events.length > 0) this.#run.onEntries(events.map((event) => event.entry));
    for (const event of events) this.#known.add(event);
  }

  #settleAtHead(): void {
    for (const event of this.#stream.log) this.#known.add(event);
    this.#era = this.#stream.era;
    this.#cursor = this.#stream.newest;
    this.#proved = this.#cursor;
    this.#held = null;
  }
}

/** The first entry that is kept and has nothing missing behind it. */
function firstBeyondMissing(events: readonly ModelEvent[]): EventId | null {
  return events[events.findLastIndex((event) => event.goneAt !== null) + 1]?.id ?? null;
}
