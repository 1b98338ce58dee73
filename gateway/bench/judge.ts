/**
 * Judges what one reader gets against what its run was published (docs/wire-protocol.md, "Gaps"): ids rise, no event comes twice, and none is
 * missing unless a gap says so. A reader with nothing wrong costs a few numbers; what is missing is kept until the end, for a gap may come
 * later than the event behind it.
 */
import { Missing } from "./missing.ts";
import { addExample, isHarmless, type Tally } from "./tally.ts";

/** What is known of a run when its readers are judged. */
export interface PublishedRun {
  /** Events given to the gateway; their numbers are below it. */
  readonly published: number;
  /** Numbers of those that were not confirmed, so that they may be stored or not. */
  readonly unconfirmed: ReadonlySet<number>;
}

export class Judge {
  readonly #tally: Tally;
  /** One more than the highest number that came. */
  next = 0;
  hasEnded = false;
  /** The last id heard, of a cursor too. */
  #milliseconds = -1;
  #sequence = -1;
  /** The last event's id. */
  #eventMilliseconds = 0;
  #eventSequence = 0;
  #afterRollback = false;
  #missing: Missing | null = null;

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  event(milliseconds: number, sequence: number, n: number): void {
    this.#tally.events++;
    if (this.hasEnded) this.#tally.behindEnd++;
    if (n < this.next && !(this.#missing?.comesLate(n) ?? false)) {
      this.#tally.doubled++;
      return;
    }
    const rises = this.#rises(milliseconds, sequence);
    if (n < this.next || !rises) this.#tally.disordered++;
    const id = { milliseconds, sequence };
    if (n > this.next) {
      const before = { milliseconds: this.#eventMilliseconds, sequence: this.#eventSequence };
      // Behind a rollback ids may fall, and what the broker lost has none any more.
      const excused = this.#afterRollback;
      this.#missing ??= new Missing();
      this.#missing.hole({ first: this.next, last: n - 1, before, after: id, excused });
    }
    this.#missing?.eventCame(id);
    if (n >= this.next) this.next = n + 1;
    this.#moveTo(milliseconds, sequence);
    this.#eventMilliseconds = milliseconds;
    this.#eventSequence = sequence;
  }

  /** Any frame of the gateway's own. */
  frame(name: string, milliseconds: number, sequence: number, data: string): void {
    if (this.hasEnded) this.#tally.behindEnd++;
    if (name === "end") this.hasEnded = true;
    else if (name === "gap") this.#gap(data);
    else if (name === "cursor") {
      // One behind a gap may repeat the place where the reader is.
      const isHere = milliseconds === this.#milliseconds && sequence === this.#sequence;
      if (!isHere && !this.#rises(milliseconds, sequence)) this.#tally.disordered++;
      this.#moveTo(milliseconds, sequence);
    } else if (name === "error") addExample(this.#tally, `the gateway said error: ${data.slice(0, 200)}`);
    else this.unreadable(`a frame ${JSON.stringify(name.slice(0, 60))} that nobody published`);
  }

  unreadable(what: string): void {
    this.#tally.unreadable++;
    addExample(this.#tally, what);
  }

  /** Counts what is missing. `complete`: the reader was there until its run was ended, so that all events should have come. */
  finish(run: PublishedRun, complete: boolean): void {
    if (complete && this.next < run.published) {
      const before = { milliseconds: this.#eventMilliseconds, sequence: this.#eventSequence };
      const after = { milliseconds: Number.POSITIVE_INFINITY, sequence: 0 };
      this.#missing ??= new Missing();
      this.#missing.hole({ first: this.next, last: run.published - 1, before, after, excused: this.#afterRollback });
    }
    if (complete && !this.hasEnded) this.#tally.endless++;
    this.#missing?.count(run.unconfirmed, this.#tally);
  }

  #gap(data: string): void {
    this.#missing ??= new Missing();
    const gap = this.#missing.gap(data);
    if (gap === null) {
      this.unreadable(`a gap is ${data.slice(0, 200)}`);
      return;
    }
    this.#tally.gaps.set(gap.reason, (this.#tally.gaps.get(gap.reason) ?? 0) + 1);
    if (!isHarmless(gap.reason)) this.#tally.missed += gap.missed ?? 0;
    if (gap.reason === "rollback") this.#afterRollback = true;
  }

  #rises(milliseconds: number, sequence: number): boolean {
    if (milliseconds < 0) return false;
    if (this.#afterRollback) return true;
    return milliseconds > this.#milliseconds || (milliseconds === this.#milliseconds && sequence > this.#sequence);
  }

  #moveTo(milliseconds: number, sequence: number): void {
    this.#afterRollback = false;
    this.#milliseconds = milliseconds;
    this.#sequence = sequence;
  }
}
