/** One reader of a run: a place, a filter and a flow state. It holds no events, so it costs the same whatever the rate. */
import type { EventId } from "../../protocol/event-id.ts";
import type { Gap, Position } from "../broker/broker.ts";
import type { Filter } from "./filter.ts";
import type { Page } from "./page.ts";
import type { Run } from "./run.ts";
import type { Sink } from "./sink.ts";
import type { WheelNode } from "./wheel.ts";

/** The run does not know yet what its stream holds. */
export const WAITING = 0;
/** Reads the ring from `place` on. */
export const LIVE = 1;
/** Is fed from pages of history, from `position` on. */
export const HISTORY = 2;
export const CLOSED = 3;

/** Times are whole milliseconds, so that V8 keeps them in the object: an infinity would cost a box of its own. */
export const NEVER = 0x7fff_ffff;
const LONG_AGO_MS = 60_000;

export class Subscriber implements WheelNode {
  readonly run: Run;
  readonly sink: Sink;
  readonly filter: Filter;
  /** Milliseconds of the wall clock at which the right to read ends. */
  readonly expiresAt: number | null;

  state: typeof WAITING | typeof LIVE | typeof HISTORY | typeof CLOSED = WAITING;
  /** LIVE: offset in the ring of the next entry. HISTORY: index in `page`. */
  place = 0;
  /** HISTORY: where the next page begins; null is before everything. WAITING: as the client asked. */
  position: Position | null;
  page: Page | null = null;
  /** HISTORY: true while a page has been asked for. */
  awaiting = false;
  /** WAITING: how many of the last entries to begin with, when the client asked so. */
  tail: number | null;
  /** Id of the last entry passed, sent or held back by the filter; null before the first. */
  lastId: EventId | null;
  /** True when `lastId` was held back by the filter, and the client has not heard of it. */
  owesCursor = false;
  /** True when `lastId` is the id of an entry, not a time that the client gave. */
  lastIdIsReal = false;
  /** A gap that is still to be told. */
  pendingGap: Gap | null = null;
  /** The gap told last, until an entry has passed: a page read again must not tell it again. */
  toldGap: Gap | null = null;
  /** True behind a gap until an event or cursor has been sent. */
  behindGap = false;
  /** What stands for the head as it was at that gap, until an entry has passed. */
  gapNewest: EventId | null = null;
  /** LIVE: entries of the ring up to this id came by a page already. */
  skipThrough: EventId | null = null;
  /** A place behind which the broker had nothing when it was asked last. */
  provenHead: EventId | null = null;
  /** Serial number of the last outage that this reader was told. */
  outageTold = 0;
  /** True when this stream was opened with a position that is still to be counted as a resume. */
  resuming: boolean;
  blocked = false;
  /** Since when the socket has been full, in milliseconds of the run's clock. */
  blockedSince = 0;
  openedAt: number;
  lastWriteAt: number;
  /** When the last event was sent; decides between the two heartbeat intervals. */
  lastEventAt: number;
  /** When this stream has lived long enough, in milliseconds of the run's clock. */
  ageAt = NEVER;
  /** Index in the run's list. */
  index = -1;
  /** True while it stands in the table's list of readers to serve. */
  queued = false;

  wheelNext: WheelNode | null = null;
  wheelPrevious: WheelNode | null = null;
  wheelTick = -1;

  constructor(
    run: Run,
    sink: Sink,
    filter: Filter,
    position: Position | null,
    tail: number | null,
    expiresAt: number | null,
    now: number,
  ) {
    this.run = run;
    this.sink = sink;
    this.filter = filter;
    this.position = position;
    this.tail = tail;
    this.expiresAt = expiresAt;
    this.lastId = position === null ? null : position.id;
    this.resuming = position !== null;
    this.openedAt = now;
    this.lastWriteAt = now;
    this.lastEventAt = now - LONG_AGO_MS;
  }
}
