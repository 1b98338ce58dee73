/**
 * The truth of the model: one stream that trims, deletes, expires, rolls back and ends, with all that ever was in it; and what a broker
 * that knows as much as Redis does answers about it.
 */
import type { Gap, HistoryPage, Position, StoredEntry, Tail } from "../../gateway/broker/broker.ts";
import { compareEventIds, type EventId, millisecondsOf, ZERO_ID } from "../../protocol/event-id.ts";

export interface ModelEvent {
  readonly id: EventId;
  /** Counts publishes over the whole history of the world, lost ones too; -1 for an end. */
  readonly n: number;
  readonly kind: string;
  readonly entry: StoredEntry;
  /** The stream that it was in: each expiry begins a new one. */
  readonly era: number;
  /** Step at which it was published. */
  readonly at: number;
  /** Step at which it was trimmed, deleted or expired; null while it is kept. */
  goneAt: number | null;
  /** A rollback took it. */
  lost: boolean;
}

export class ModelStream {
  now = 1_000_000;
  /** Clock of the broker, which can fall behind. */
  clock = 1_000_000;
  /** Counts what happens to the world, so that rules can say before and after. */
  step = 0;
  /** All that ever was, in the order of its publishing. */
  readonly everything: ModelEvent[] = [];
  /** The present stream on its present branch, entries that are gone included. */
  log: ModelEvent[] = [];
  era = 0;
  published = 0;
  /** Branches ever begun; part of each id, so that no two entries of the world have the same. */
  branch = 0;
  /** Step of the last rollback, or time that ids began again below former ones, or that a gateway heard of one. */
  rolledBackAt = -1;
  mark: EventId | null = null;
  /** The mark was set while its end was kept; one set later goes unheard by who watches already. */
  markIsTimely = false;
  /** The mark cannot be read at present, though the stream can. */
  markIsAway = false;
  #last: EventId = ZERO_ID;
  /** What was deleted from the middle: a reader may find that late. */
  readonly deleted = new Set<ModelEvent>();
  /** What was gone when a position was handed out: of that, whoever stands there has been told. */
  readonly #missedBefore = new WeakMap<Position, ReadonlySet<ModelEvent>>();

  publish(kind: string): void {
    const index = this.published++;
    const event = { pipeline_run_id: "run", step_run_id: null, step_name: null, kind, correlation_id: null, index, payload: {} };
    this.#add(index, kind, `{"type":"event","event":${JSON.stringify(event)}}`);
  }

  /** `marks`: as our own `POST …/end` does; a ZenML server leaves that to whoever sees the entry. */
  end(marks = false): void {
    const id = this.#add(-1, "", '{"type":"end"}');
    if (marks) this.setMark(id);
  }

  setMark(id: EventId | null): void {
    this.mark = id;
    this.markIsTimely = id !== null && this.isKept(id);
  }

  /** Keeps the youngest. */
  trim(keep: number): void {
    const kept = this.kept();
    for (const event of kept.slice(0, Math.max(0, kept.length - keep))) event.goneAt = this.step;
  }

  /** Removes one entry, counted from the oldest kept. */
  delete(index: number): void {
    const kept = this.kept();
    const event = kept[index % Math.max(1, kept.length)];
    if (event === undefined) return;
    event.goneAt = this.step;
    this.deleted.add(event);
  }

  /** The key goes. What is published later is a new stream, whose ids may be lower if the clock fell behind. */
  expire(clockBehindMs: number): void {
    if (this.log.length === 0) return;
    for (const event of this.log) event.goneAt ??= this.step;
    this.#fallBack(clockBehindMs);
    this.log = [];
    this.era++;
    this.#last = ZERO_ID;
  }

  /** Loses the last `count` entries, as a failover does, and lets the clock fall behind. */
  rollBack(count: number, clockBehindMs: number): void {
    const lost = this.log.slice(Math.max(0, this.log.length - count));
    if (lost.length === 0 || lost.length > this.kept().length) return;
    for (const event of lost) event.lost = true;
    this.log = this.log.slice(0, this.log.length - lost.length);
    this.#last = this.log.at(-1)?.id ?? ZERO_ID;
    this.#fallBack(clockBehindMs);
    this.rolledBackAt = this.step;
    if (this.mark !== null && !this.has(this.mark)) this.mark = null;
  }

  #fallBack(ms: number): void {
    const clock = Math.max(millisecondsOf(this.#last) + 1, this.clock - ms);
    if (clock < this.clock) this.rolledBackAt = this.step;
    this.clock = clock;
    this.branch++;
  }

  /** Newest id that the present stream ever gave out. */
  get newest(): EventId | null {
    return this.log.at(-1)?.id ?? null;
  }

  get #deletedUpTo(): EventId {
    return this.log.findLast((event) => this.deleted.has(event))?.id ?? ZERO_ID;
  }

  get #end(): Pick<HistoryPage, "endedId" | "isMarkUnknown"> {
    return this.markIsAway ? { endedId: null, isMarkUnknown: true } : { endedId: this.mark };
  }

  kept(): ModelEvent[] {
    return this.log.filter((event) => event.goneAt === null);
  }

  /** True for an entry of the present stream and branch, kept or not. */
  has(id: EventId): boolean {
    return this.log.some((event) => event.id === id);
  }

  isKept(id: EventId): boolean {
    return this.log.some((event) => event.id === id && event.goneAt === null);
  }

  // --- what a broker answers -------------------------------------------------------------------------------------------------

  tail(count: number): Tail {
    const kept = this.kept();
    const entries = count === 0 ? [] : kept.slice(-count);
    const exists = this.log.length > 0;
    const complete = entries.length === this.log.length && (exists || (this.mark === null && !this.markIsAway));
    const after = entries.length < kept.length ? kept[kept.length - entries.length - 1]!.id : null;
    const stands = { newest: this.newest, ...this.#end, deletedUpTo: this.#deletedUpTo };
    return { entries: entries.map((event) => event.entry), complete, after, ...stands };
  }

  findTail(count: number): Position | null {
    const kept = this.kept();
    const before = kept[kept.length - count - 1];
    return before === undefined ? null : { id: before.id, exact: true };
  }

  page(position: Position | null, limit: number): HistoryPage {
    const { newest } = this;
    const behind = this.kept().filter((event) => position === null || compareEventIds(event.id, position.id) > 0);
    const entries = behind.slice(0, limit);
    const stands = { newest, ...this.#end, deletedUpTo: this.#deletedUpTo };
    const page = { entries: entries.map((event) => event.entry), ...stands };
    const gap = position === null ? null : this.#lossBehind(position, entries);
    if (newest === null) return { ...page, gap, next: null, atHead: true };
    if (gap?.reason === "rollback" && entries.length === 0) {
      const head = this.kept().at(-1)?.id;
      return { ...page, gap, next: head === undefined ? this.#place(newest, true) : { id: head, exact: true }, atHead: true };
    }
    return {
      ...page,
      gap,
      next: this.#next(position, newest, entries.at(-1)?.id ?? null),
      atHead: entries.length === behind.length,
    };
  }

  #next(position: Position | null, newest: EventId, last: EventId | null): Position {
    if (last !== null) return this.#place(last, true);
    // A time that lies ahead of the stream stays the place to wait at.
    if (position !== null && !position.exact && compareEventIds(position.id, newest) > 0) return position;
    // Whoever finds nothing kept holds the newest id that ever was.
    return this.#place(newest, position?.id === newest ? position.exact : true);
  }

  #place(id: EventId, exact: boolean): Position {
    const place = { id, exact };
    this.#missedBefore.set(place, new Set(this.log.filter((event) => event.goneAt !== null)));
    return place;
  }

  /** What is missing behind a position, as far as it can be known: a place that is itself gone proves nothing. */
  #lossBehind(position: Position, entries: readonly ModelEvent[]): Gap | null {
    const { id } = position;
    const isHeld = position.exact && id !== ZERO_ID;
    const first = entries[0]?.id ?? null;
    const retention: Gap = { reason: "retention", from: id, to: first, missed: null };
    if (this.newest === null) {
      const isBeforeEnd = this.mark !== null && !this.markIsAway && compareEventIds(id, this.mark) < 0;
      return isHeld || isBeforeEnd ? { ...retention, to: null } : null;
    }
    if (id === this.newest) return null;
    if (compareEventIds(id, this.newest) > 0) return isHeld ? { ...retention, reason: "rollback", to: null } : null;
    const isForeign = isHeld && !this.has(id);
    const known = this.#missedBefore.get(position);
    const gone = this.log.filter(
      (event) => event.goneAt !== null && (isForeign || compareEventIds(event.id, id) > 0) && known?.has(event) !== true,
    );
    const to = entries.find((event) => gone.length === 0 || compareEventIds(event.id, gone.at(-1)!.id) > 0)?.id ?? null;
    const isOlder = this.kept().every((event) => compareEventIds(event.id, id) > 0);
    if (isForeign) return { ...retention, reason: isOlder ? "retention" : "rollback", to };
    if (gone.length > 0) return { ...retention, to, missed: gone.length };
    // Trimmed itself, with nothing behind it missing: only who has counted up to it can tell.
    return isHeld && !this.isKept(id) && isOlder && known === undefined ? retention : null;
  }

  #add(n: number, kind: string, payload: string): EventId {
    this.clock++;
    const milliseconds = Math.max(this.clock, millisecondsOf(this.#last) + 1);
    const id = `${milliseconds}-${this.branch}`;
    const entry = { id, payload: Buffer.from(payload) };
    const event: ModelEvent = { id, n, kind, entry, era: this.era, at: this.step, goneAt: null, lost: false };
    this.#last = id;
    this.everything.push(event);
    this.log.push(event);
    return id;
  }
}
