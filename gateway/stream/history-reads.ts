/** The reads of a run's history: at most one at a place, shared by all who want it, and kept for the moment after. */
import type { HistoryPage, Position } from "../broker/broker.ts";
import { type Asked, Page, PageCache, samePlace } from "./page.ts";
import { enterPage } from "./replay.ts";
import type { Run } from "./run.ts";
import { HISTORY, type Subscriber } from "./subscriber.ts";

export class HistoryReads {
  readonly #run: Run;
  readonly #cache = new PageCache();
  /** Positions that the broker has handed out: they know more than they show, so that none equals another. */
  readonly #handedOut = new WeakSet<Position>();
  #reads: PageRead[] = [];

  constructor(run: Run) {
    this.#run = run;
  }

  /** Gets the page at the subscriber's position: one just read, one being read, or a new one. */
  want(subscriber: Subscriber, now: number): void {
    if (subscriber.awaiting || subscriber.state !== HISTORY) return;
    const { position } = subscriber;
    const found = this.#cache.find(position, now);
    if (found !== null) {
      enterPage(subscriber, found.page, found.index);
      return;
    }
    subscriber.awaiting = true;
    const read = this.#reads.find((other) => !other.isOld && this.#isSame(other.position, position));
    if (read === undefined) this.#ask(position, [subscriber]);
    else read.late.push(subscriber);
  }

  /** Reads a page that nobody waits for, for what it says of the end. One that is being read may have been asked for too early. */
  look(position: Position): void {
    if (!this.#reads.some((read) => read.position === position)) this.#ask(position, []);
  }

  /** An answer has come. `heed` hears of the page before those who wait for it get it. */
  answered(position: Position | null, history: HistoryPage, now: number, heed: (page: Page) => void): void {
    const read = this.#take(position);
    const page = new Page(position, history, read.asked);
    if (page.end !== null) this.#handedOut.add(page.end);
    if (page.gap?.reason === "rollback") this.forget();
    else if (!read.isOld) this.#cache.add(page, now);
    heed(page);
    // That a position is newer than the stream, or that there is none, must be the answer to a question asked after the request came.
    const asksAgain = page.gap !== null && (page.gap.reason === "rollback" || page.next === 0);
    for (const subscriber of read.waiting) this.#give(subscriber, page);
    for (const subscriber of read.late) {
      if (asksAgain) {
        subscriber.awaiting = false;
        this.want(subscriber, now);
      } else this.#give(subscriber, page);
    }
  }

  failed(position: Position | null): void {
    const read = this.#take(position);
    for (const subscriber of [...read.waiting, ...read.late]) subscriber.awaiting = false;
  }

  /** What was read before a rollback says nothing any more to who comes now, and what is being read may say as little. */
  forget(): void {
    this.#cache.clear();
    // Of two answers without a position, nobody could say which question each belongs to.
    for (const read of this.#reads) read.isOld = read.position !== null;
  }

  /** Forgets pages read a while ago; true while some are kept. */
  expire(now: number): boolean {
    return this.#cache.expire(now);
  }

  #give(subscriber: Subscriber, page: Page): void {
    if (enterPage(subscriber, page, 0)) this.#run.host.serveSoon(subscriber);
  }

  #ask(position: Position | null, waiting: Subscriber[]): void {
    const { ring, end, host } = this.#run;
    const asked = { ringNext: ring.next, ringEpoch: ring.epoch, endId: end.id };
    this.#reads.push({ position, asked, waiting, late: [], isOld: false });
    host.readPage(this.#run, position, this.#pageEntries());
  }

  #take(position: Position | null): PageRead {
    const index = this.#reads.findIndex((read) => read.position === position);
    return this.#reads.splice(index, 1)[0]!;
  }

  #isSame(a: Position | null, b: Position | null): boolean {
    if (a === b) return true;
    return samePlace(a, b) && !this.#handedOut.has(a!) && !this.#handedOut.has(b!);
  }

  /** Pages of about a mebibyte, whatever the size of this run's events. */
  #pageEntries(): number {
    const { ring, settings } = this.#run;
    const average = ring.bytes / Math.max(1, ring.next - ring.first);
    return Math.min(settings.pageEntries, Math.max(16, Math.floor(PAGE_BYTES / Math.max(1, average))));
  }
}

/** A read under way, with those who wait for it; the late ones came after it had begun. */
interface PageRead {
  readonly position: Position | null;
  readonly asked: Asked;
  readonly waiting: Subscriber[];
  readonly late: Subscriber[];
  /** Asked before a rollback was known. */
  isOld: boolean;
}

const PAGE_BYTES = 1024 * 1024;
