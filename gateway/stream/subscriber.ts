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

/** Ids of the ring up to `skipThrough` are not wanted: a time that the client gave, or a place behind which there was nothing. */
export const NOT_WANTED = 0;
/** A page brought them, ahead of the ring, which has to come by that very id; else it went another way, and the broker has to say how. */
export const HAD_BY_PAGE = 1;
/** The stream was gone when the broker was asked for a held place; ids up to it are another stream's, and the broker has to say so. */
export const WAS_GONE = 2;

/** Times are whole milliseconds from the start of the process, so that V8 keeps them in the object for the first 24 days. */
export const NEVER = -1;
const LONG_AGO_MS = 60_000;

/** How a subscriber is let go without a loss; `zenml` is a shutdown in the frames of ZenML's server. */
export type Leave = "age" | "slow" | "shutdown" | "zenml";

export class Subscriber implements WheelNode {
  readonly run: Run;
  readonly sink: Sink;
  readonly filter: Filter;
  /** Milliseconds of the wall clock at which the right to read ends. */
  readonly expiresAt: number | null;

  state: typeof WAITING | typeof LIVE | typeof HISTORY | typeof CLOSED = WAITING;
  /** LIVE: offset in the ring of the next entry. HISTORY: index in `page`. */
  place = 0;
  /**
   * HISTORY: where the page begins, or the next one; null is before everything. WAITING: as the client asked. LIVE: where to ask on
   * behind a rollback, for as long as there is no last id.
   */
  position: Position | null;
  page: Page | null = null;
  /** True while the broker has been asked for a page, or for the place of a tail. */
  awaiting = false;
  /** WAITING: how many of the last entries to begin with, when the client asked so. */
  tail: number | null;
  /** Id of the last entry passed, sent or held back by the filter; null before the first. */
  lastId: EventId | null;
  /** True when `lastId` is the id of an entry, not a time that the client gave. */
  lastIdIsReal = false;
  /** True when `lastId` was held back by the filter, and the client has not heard of it. */
  owesCursor = false;
  /** A gap that is still to be told. */
  pendingGap: Gap | null = null;
  /** The gap told last, until an entry has passed or the head is reached: a page read again must not tell it again. */
  toldGap: Gap | null = null;
  /** Up to this offset it had heard of what the ring found late, and without an id of all gaps, when it last left that; -1: it never did. */
  leftAt = -1;
  /** What it was fed from pages last, from behind an id (null: from before everything) up to another (null: nothing). */
  pagedFrom: EventId | null;
  pagedTo: EventId | null = null;
  /** True behind a gap until an event or cursor has been sent. */
  behindGap = false;
  /** What stands for the head as it was at that gap, until an entry has passed. */
  gapNewest: EventId | null = null;
  /** LIVE: what of the ring is to be passed over, and as what. */
  skipThrough: EventId | null = null;
  skipAs: typeof NOT_WANTED | typeof HAD_BY_PAGE | typeof WAS_GONE = NOT_WANTED;
  /** The end of the run before which this reader lacks nothing, as the broker has said. */
  provenEnd: EventId | null = null;
  /** Serial number of the last outage that this reader was told. */
  outageTold = 0;
  /** True when this stream was opened with a position that is still to be counted as a resume. */
  resuming: boolean;
  blocked = false;
  /** Since when the socket has been full, in milliseconds of the run's clock. */
  blockedSince = 0;
  readonly openedAt: number;
  lastWriteAt: number;
  /** When the last event was sent; decides between the two heartbeat intervals. */
  lastEventAt: number;
  /** When this stream has lived long enough, in milliseconds of the run's clock. */
  ageAt: number = NEVER;
  /** It is to go as soon as its socket takes bytes. */
  leaving: Leave | null = null;
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
    this.pagedFrom = this.lastId;
    this.resuming = position !== null;
    this.openedAt = now;
    this.lastWriteAt = now;
    this.lastEventAt = now - LONG_AGO_MS;
  }

  /** On in the ring, from an offset on. */
  goLive(place: number): void {
    this.state = LIVE;
    this.place = place;
    this.position = null;
    this.page = null;
  }

  /** On in history. */
  goBack(position: Position | null): void {
    if (this.state === LIVE) {
      this.leftAt = Math.max(this.leftAt, this.place);
      this.pagedFrom = this.lastId;
    }
    this.state = HISTORY;
    this.position = position;
    this.page = null;
    this.skipThrough = null;
  }

  skip(through: EventId, as: Subscriber["skipAs"]): void {
    this.skipThrough = through;
    this.skipAs = as;
  }

  /** A reader that stalls must not hold a page: it keeps its position, and asks again when it drains. */
  letGoOfPage(): void {
    const { page, place } = this;
    // An empty one holds nothing, and what it said of this moment must not be asked again.
    if (page === null || page.next === 0) return;
    if (place > 0) this.position = { id: page.at(place - 1).id, exact: true };
    this.page = null;
  }
}
