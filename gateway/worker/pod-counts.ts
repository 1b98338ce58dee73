/**
 * The readers of each run where several workers share its places. The first few of a worker are its own: half of all places, in equal
 * parts. Only beyond them, or when the supervisor has asked about the run, is a place asked for. So a connect costs nothing more
 * on a run that is far from its limit, and the limit is kept to the reader on one that is near.
 */
import { ReaderCounts, type SubscriberCounts } from "./streams.ts";

/**
 * After a question of the supervisor its answer to others may rest on ours: places are asked for, not taken. For so long, since others may
 * hold what they were granted then for as long as their streams live, and ask again only for the next.
 */
const ASKED_MS = 600_000;
/** Beyond so many runs the longest ago is forgotten. */
const MAX_ASKED = 10_000;
/**
 * A supervisor that has not answered by then is busy, and the reader is taken: a limit that is passed for a while does less harm than a
 * reader refused without a reason. Longer than a decision with two polls takes.
 */
const UNANSWERED_MS = 1_000;
/** Beyond so many open questions readers are taken as if there were no answer. */
const MAX_OPEN = 10_000;

export class PodCounts implements SubscriberCounts {
  readonly #own: number;
  readonly #ask: (id: number, runId: string) => boolean;
  readonly #now: () => number;
  readonly #unanswered: () => void;
  readonly #counts = new ReaderCounts();
  readonly #askedUntil = new Map<string, number>();
  readonly #open = new Map<number, (granted: boolean) => void>();
  #lastId = 0;

  /** `ask` sends a claim to the supervisor; `unanswered` hears of each reader that was taken without an answer. */
  constructor(
    mostPerRun: number,
    workers: number,
    ask: (id: number, runId: string) => boolean,
    unanswered: () => void,
    now: () => number = () => performance.now(),
  ) {
    this.#own = Math.floor(mostPerRun / (2 * workers));
    this.#ask = ask;
    this.#unanswered = unanswered;
    this.#now = now;
  }

  claim(runId: string): boolean | Promise<boolean> {
    if (this.#counts.of(runId) < this.#own && !this.#isAsked(runId)) {
      this.#counts.add(runId);
      return true;
    }
    if (this.#open.size >= MAX_OPEN) return this.#takeUnanswered(runId);
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const decide = (granted: boolean): void => {
        clearTimeout(limit);
        this.#open.delete(id);
        if (granted) this.#counts.add(runId);
        resolve(granted);
      };
      const withoutAnswer = (): void => {
        this.#unanswered();
        decide(true);
      };
      const limit = setTimeout(withoutAnswer, UNANSWERED_MS);
      this.#open.set(id, decide);
      if (!this.#ask(id, runId)) withoutAnswer();
    });
  }

  release(runId: string): void {
    this.#counts.remove(runId);
  }

  /** The supervisor's answer. One that comes too late is for a reader that was taken already. */
  claimed(id: number, granted: boolean): void {
    this.#open.get(id)?.(granted);
  }

  /** The supervisor's question: how many readers of the run are here. */
  poll(runId: string): number {
    const now = this.#now();
    for (const [asked, until] of this.#askedUntil) {
      if (until > now && this.#askedUntil.size < MAX_ASKED) break;
      this.#askedUntil.delete(asked);
    }
    // Behind the others: the map stays in the order of its times.
    this.#askedUntil.delete(runId);
    this.#askedUntil.set(runId, now + ASKED_MS);
    return this.#counts.of(runId);
  }

  #isAsked(runId: string): boolean {
    return this.#askedUntil.size > 0 && (this.#askedUntil.get(runId) ?? 0) > this.#now();
  }

  #takeUnanswered(runId: string): true {
    this.#unanswered();
    this.#counts.add(runId);
    return true;
  }
}
