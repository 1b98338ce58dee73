import { describe, expect, it } from "vitest";
import { waitFor } from "../../test/support/wait-for.ts";
import { PodCounts } from "../worker/pod-counts.ts";
import { SubscriberPolls } from "./subscriber-polls.ts";

const RUN = "run-a";

/** Supervisor and workers with messages that take a turn of the event loop each, as over a channel. */
class Pod {
  readonly workers: PodCounts[] = [];
  readonly polls: SubscriberPolls;
  readonly stuck = new Set<number>();
  asked = 0;
  unanswered = 0;
  /** Milliseconds on the workers' clock. */
  now = 0;

  constructor(most: number, workers: number) {
    const polled = Array.from({ length: workers }, (_, index) => ({
      poll: (id: number, runId: string) => {
        this.asked++;
        if (!this.stuck.has(index)) {
          setImmediate(() => {
            const count = this.workers[index]!.poll(runId);
            setImmediate(() => this.polls.answered(id, count));
          });
        }
        return true;
      },
    }));
    this.polls = new SubscriberPolls(most, () => polled);
    for (let index = 0; index < workers; index++) {
      const ask = (id: number, runId: string): boolean => {
        setImmediate(() => this.polls.claim(runId, (granted) => setImmediate(() => this.workers[index]!.claimed(id, granted))));
        return true;
      };
      const unanswered = (): void => void this.unanswered++;
      this.workers.push(new PodCounts(most, workers, ask, unanswered, () => this.now));
    }
  }

  claim(worker: number): Promise<boolean> {
    return Promise.resolve(this.workers[worker]!.claim(RUN));
  }
}

describe("places of a run over all workers", () => {
  it("are exactly as many as there are, however claims are spread, all at once or one by one", async () => {
    for (const workers of [2, 3, 4]) {
      const pod = new Pod(100, workers);
      const all = await Promise.all(Array.from({ length: 150 }, (_, index) => pod.claim(index % workers)));
      expect(all.filter(Boolean)).toHaveLength(100);
      const skewed = new Pod(100, workers);
      let taken = 0;
      for (let n = 0; n < 110; n++) if (await skewed.claim(n < 90 ? 0 : workers - 1)) taken++;
      expect(taken).toBe(100);
    }
  });

  it("are no more when those who have most of them have long been quiet", async () => {
    const pod = new Pod(100, 2);
    for (let n = 0; n < 95; n++) expect(await pod.claim(0)).toBe(true);
    let taken = 0;
    for (let minutes = 0; minutes < 60; minutes += 5) {
      pod.now += 5 * 60_000;
      for (let n = 0; n < 2; n++) if (await pod.claim(1)) taken++;
    }
    expect(taken).toBe(5);
  });

  it("cost no question on a run far from its limit", async () => {
    const pod = new Pod(100, 4);
    for (let worker = 0; worker < 4; worker++) for (let n = 0; n < 12; n++) expect(await pod.claim(worker)).toBe(true);
    expect(pod.asked).toBe(0);
  });

  it("come back with each reader that leaves", async () => {
    const pod = new Pod(4, 2);
    for (const worker of [0, 0, 1, 1]) expect(await pod.claim(worker)).toBe(true);
    expect(await pod.claim(0)).toBe(false);
    pod.workers[1]!.release(RUN);
    expect(await pod.claim(0)).toBe(true);
    expect(await pod.claim(1)).toBe(false);
  });

  it("are not refused for a reader whose leaving another worker hears of a moment later", async () => {
    const pod = new Pod(2, 2);
    expect(await pod.claim(0)).toBe(true);
    expect(await pod.claim(1)).toBe(true);
    const back = pod.claim(0);
    await waitFor("the first round of questions", () => pod.asked >= 4);
    pod.workers[1]!.release(RUN);
    expect(await back).toBe(true);
  });

  it("are not refused for readers of a worker that does not answer", async () => {
    const pod = new Pod(2, 2);
    for (const worker of [1, 1]) expect(await pod.claim(worker)).toBe(true);
    pod.stuck.add(1);
    expect(await pod.claim(0)).toBe(true);
    expect(pod.unanswered).toBe(0);
  });

  it("are taken without an answer where the supervisor gives none in a second, and that is counted", async () => {
    let unanswered = 0;
    const counts = new PodCounts(
      1,
      2,
      () => true,
      () => unanswered++,
    );
    expect(await counts.claim(RUN)).toBe(true);
    expect(unanswered).toBe(1);
    expect(counts.poll(RUN)).toBe(1);
    const gone = new PodCounts(
      1,
      2,
      () => false,
      () => unanswered++,
    );
    expect(await gone.claim(RUN)).toBe(true);
    expect(unanswered).toBe(2);
  });
});
