/** Feeds a subscriber from pages of history, and finds the seam behind which the ring goes on. */
import { compareEventIds, ZERO_ID } from "../../protocol/event-id.ts";
import type { Position } from "../broker/broker.ts";
import { gapBefore, hearWhatWasFoundMeanwhile, meetPageGap } from "./gaps.ts";
import { send } from "./outlet.ts";
import type { Page } from "./page.ts";
import { HAD_BY_PAGE, HISTORY, LIVE, NOT_WANTED, type Subscriber, WAS_GONE } from "./subscriber.ts";

/** What an advance returns that cannot go on; else it is the number of its writes. */
export const STOPPED = -1;

export function advanceInHistory(subscriber: Subscriber, now: number): number {
  const { page, run } = subscriber;
  if (page === null) {
    run.wantPage(subscriber);
    return subscriber.page === null ? STOPPED : 0;
  }
  if (subscriber.place >= page.next) {
    leavePage(subscriber, page);
    if (subscriber.state === LIVE) hearWhatWasFoundMeanwhile(subscriber);
    return 0;
  }
  const batch = page.batches.get(page, subscriber.place, subscriber.filter);
  if (batch.events > 0) run.host.counters.replayed(batch.events);
  return send(subscriber, batch, now);
}

/** A page has come that holds the subscriber's place, at an index. False when it has no use for it now. */
export function enterPage(subscriber: Subscriber, page: Page, index: number): boolean {
  subscriber.awaiting = false;
  // One that stalled meanwhile keeps its position and asks again when it drains: it must not hold a page.
  if (subscriber.state !== HISTORY || subscriber.blocked) return false;
  subscriber.page = page;
  subscriber.place = index;
  const gap = index === 0 ? gapBefore(subscriber, page) : null;
  if (gap !== null) meetPageGap(subscriber, gap, page.newest);
  // Of a mere time a page says nothing, but in its midst every place is an entry.
  else if (index > 0 || page.position?.exact === true) subscriber.lastIdIsReal = true;
  if (subscriber.resuming) {
    subscriber.resuming = false;
    subscriber.run.host.counters.resumed(gap === null ? "history" : "gap");
  }
  return true;
}

/** On to the ring when it covers what follows, else to the next page. */
function leavePage(subscriber: Subscriber, page: Page): void {
  const { ring, end } = subscriber.run;
  const asked = subscriber.position;
  const nothingBehind = page.atHead && page.next === 0;
  if (nothingBehind && end.id !== null && page.tellsOfEnd(end.id)) subscriber.provenEnd = end.id;
  const ringHasAllSince = page.ringEpoch === ring.epoch && page.ringNext >= ring.first;
  if (page.end === null) {
    leaveNothing(subscriber, asked, ringHasAllSince ? page.ringNext : null);
    return;
  }
  const { id, exact } = page.end;
  subscriber.lastId = id;
  subscriber.lastIdIsReal = exact;
  const place = ring.placeAfter(id, exact);
  if (place !== null) subscriber.goLive(place);
  else if (!page.atHead || page.ringEpoch !== ring.epoch) subscriber.goBack(page.end);
  else if (ring.newest === null || compareEventIds(id, ring.newest) > 0) {
    // The broker has answered ahead of the ring: what that gets next may be known already.
    subscriber.goLive(ring.next);
    subscriber.skip(id, exact ? HAD_BY_PAGE : NOT_WANTED);
  } else if (nothingBehind && ringHasAllSince && ring.goesOnBehind(id, page.ringNext)) {
    // Nothing lay behind this place, and all that came into the ring since the question does.
    subscriber.goLive(page.ringNext);
  } else {
    // What came since and lies before this place may be of another history: after a failover only the broker can say. Nor can the ring
    // say how much of what a gap spans lies behind this place.
    subscriber.goBack(page.end);
  }
}

/** There was no stream: all that there is came into the ring since the question, from `ringPlace` on. */
function leaveNothing(subscriber: Subscriber, asked: Position | null, ringPlace: number | null): void {
  if (ringPlace === null) {
    // It was there when nothing was, so what has come and gone since is missing to it.
    subscriber.goBack(asked ?? { id: ZERO_ID, exact: false });
    return;
  }
  subscriber.goLive(ringPlace);
  if (asked !== null && asked.id !== ZERO_ID) subscriber.skip(asked.id, asked.exact ? WAS_GONE : NOT_WANTED);
}
