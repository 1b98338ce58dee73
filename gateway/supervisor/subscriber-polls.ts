/**
 * Who may take one more of a run's places, over all workers. The supervisor keeps no count, for a count that is kept can be stale: it
 * asks the workers, all claims that wait for the same run together. A worker that does not answer in time counts nothing: a place too
 * many is better than a reader refused for readers who may be gone.
 *
 * Before anybody is refused the workers are asked twice, with a pause between: a reader that was cut and is back at once, on another
 * worker, must not find its own old place taken.
 */

/** How long a worker has to answer; it answers within its loop's turn. */
const ANSWER_MS = 250;
/** Time in which a worker hears that a client of its has gone. */
const SETTLE_MS = 50;

export interface Polled {
  /** Asks how many readers a run has there. False when the question could not be sent. */
  poll(id: number, runId: string): boolean;
}

interface Claim {
  readonly decide: (granted: boolean) => void;
  tries: number;
}

interface Round {
  readonly claims: Claim[];
  running: boolean;
}

export class SubscriberPolls {
  readonly #most: number;
  readonly #workers: () => Iterable<Polled>;
  readonly #rounds = new Map<string, Round>();
  readonly #open = new Map<number, (count: number) => void>();
  #lastId = 0;

  /** `workers` are those from which an answer can be expected. */
  constructor(mostPerRun: number, workers: () => Iterable<Polled>) {
    this.#most = mostPerRun;
    this.#workers = workers;
  }

  claim(runId: string, decide: (granted: boolean) => void): void {
    const round = this.#rounds.get(runId) ?? { claims: [], running: false };
    this.#rounds.set(runId, round);
    round.claims.push({ decide, tries: 0 });
    if (!round.running) void this.#run(runId, round);
  }

  answered(id: number, count: number): void {
    this.#open.get(id)?.(count);
  }

  async #run(runId: string, round: Round): Promise<void> {
    round.running = true;
    while (round.claims.length > 0) {
      // Those who came while the last answers were on their way wait for the next ones.
      const claims = round.claims.splice(0);
      const counts = await Promise.all([...this.#workers()].map((worker) => this.#ask(worker, runId)));
      let free = this.#most - counts.reduce((sum, count) => sum + count, 0);
      let waits = false;
      for (const claim of claims) {
        if (free > 0) {
          free--;
          claim.decide(true);
        } else if (claim.tries++ > 0) claim.decide(false);
        else {
          round.claims.push(claim);
          waits = true;
        }
      }
      if (waits) await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
    this.#rounds.delete(runId);
  }

  #ask(worker: Polled, runId: string): Promise<number> {
    return new Promise((resolve) => {
      const id = ++this.#lastId;
      const done = (count: number): void => {
        clearTimeout(limit);
        this.#open.delete(id);
        resolve(count);
      };
      const limit = setTimeout(() => done(0), ANSWER_MS);
      this.#open.set(id, done);
      if (!worker.poll(id, runId)) done(0);
    });
  }
}
