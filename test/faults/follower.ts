/** A client as users write them: it goes on with its last id whatever happens to its connection, and judges all that it gets. */
import { setTimeout as pause } from "node:timers/promises";
import { compareEventIds } from "../../protocol/event-id.ts";
import { openStream, type SseReader } from "../support/sse-reader.ts";
import { waitFor } from "../support/wait-for.ts";

const RETRY_MS = 20;
const FOREVER_MS = 2 ** 31 - 1;

export interface FollowerOptions {
  readonly query?: string;
  /** Where to begin, as a client that was here before. */
  readonly lastEventId?: string;
}

export interface FollowedGap {
  readonly reason: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly missed: number | null;
}

export class Follower {
  /** `n` of each event's payload, in order. */
  readonly numbers: number[] = [];
  readonly gaps: FollowedGap[] = [];
  /** What must never happen: an id that does not rise, an event twice, a stream refused for good. */
  readonly faults: string[] = [];
  /** Streams that were opened, those that ended cleanly, and those that broke off. */
  connects = 0;
  cleanEnds = 0;
  breaks = 0;
  /** Tries that met no server, or 503. */
  refusals = 0;
  heartbeats = 0;
  /** `retry:` lines of the streams that are over. */
  readonly retries: number[] = [];
  /** The run ended. */
  ended = false;
  lastEventId: string;

  readonly #urlOf: (connects: number) => string;
  readonly #runId: string;
  readonly #query: string;
  readonly #seen = new Set<number>();
  #reader: SseReader | null = null;
  #taken = 0;
  #lastId: string;
  #isStopped = false;
  readonly #done: Promise<void>;

  /** `urlOf` gives the base address for each new connection, by how many there were. */
  constructor(runId: string, urlOf: (connects: number) => string, options: FollowerOptions = {}) {
    this.#urlOf = (connects) => `${urlOf(connects)}/api/v1/runs/${runId}/events/stream`;
    this.#runId = runId;
    this.#query = options.query ?? "";
    this.lastEventId = options.lastEventId ?? "";
    this.#lastId = this.lastEventId;
    this.#done = this.#follow();
  }

  /** True while a stream is open. */
  get isConnected(): boolean {
    return this.#reader !== null;
  }

  get reasons(): string[] {
    return this.gaps.map(({ reason }) => reason);
  }

  /** Resolves once a stream is open, the first unless one has been cut since. */
  async connected(limitMs?: number): Promise<void> {
    await waitFor("a stream is open", () => this.isConnected || this.#isStopped, limitMs);
  }

  /** Breaks the connection, as a network would; the follower comes back. */
  cut(): void {
    this.#reader?.close();
  }

  /** Waits until every number up to `count` has come, with what is missing when they do not. */
  async untilAll(count: number, limitMs?: number): Promise<void> {
    await this.until(`all ${count} events`, () => this.missing(count).length === 0, limitMs).catch((error: Error) => {
      throw new Error(`${error.message}; missing ${this.missing(count).slice(0, 20).join(", ")}`);
    });
  }

  async until(what: string, holds: () => boolean, limitMs?: number): Promise<void> {
    await waitFor(what, holds, limitMs).catch((error: Error) => {
      throw new Error(`${error.message}; ${this.story()}`);
    });
  }

  /** What it has gone through so far, for whoever has to find out why a test failed. */
  story(): string {
    return (
      `${this.#runId}${this.#query}: ${this.numbers.length} events, the last ${this.numbers.slice(-5).join(", ")}; ` +
      `gaps ${JSON.stringify(this.gaps)}; ${this.connects} connections, ${this.refusals} refusals; ` +
      `faults: ${this.faults.slice(0, 5).join("; ")}`
    );
  }

  missing(count: number): number[] {
    return Array.from({ length: count }, (_, number) => number).filter((number) => !this.#seen.has(number));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#reader?.close();
    await this.#done;
  }

  async #follow(): Promise<void> {
    while (!this.#isStopped && !this.ended) {
      const url = `${this.#urlOf(this.connects)}${this.#query}`;
      const options = this.lastEventId === "" ? {} : { lastEventId: this.lastEventId };
      const reader = await openStream(url, options).catch(() => null);
      if (reader === null || reader.status === 503) this.refusals++;
      else if (reader.status !== 200) {
        this.faults.push(`status ${reader.status}`);
        return;
      } else await this.#read(reader);
      if (!this.#isStopped && !this.ended) await pause(RETRY_MS);
    }
  }

  async #read(reader: SseReader): Promise<void> {
    this.connects++;
    this.#reader = reader;
    this.#taken = 0;
    let comments = 0;
    if (this.#isStopped) reader.close();
    await reader.waitFor(
      "the end of the body",
      () => {
        this.#take(reader);
        for (; comments < reader.comments.length; comments++) if (reader.comments[comments] === "ping") this.heartbeats++;
        return reader.ended || reader.failure !== null;
      },
      FOREVER_MS,
    );
    if (reader.ended) this.cleanEnds++;
    else this.breaks++;
    this.retries.push(...reader.retries);
    this.#reader = null;
  }

  #take(reader: SseReader): void {
    for (; this.#taken < reader.events.length; this.#taken++) {
      const { event, data, id } = reader.events[this.#taken]!;
      if (event === "gap") {
        const gap = JSON.parse(data) as FollowedGap;
        this.gaps.push(gap);
        if (gap.reason === "rollback") this.#lastId = "";
      } else if (event === "end") this.ended = true;
      else if (event === "error") this.faults.push(`error ${data}`);
      else if (event !== "cursor") this.#event(data, id);
      if (event === "cursor" && id !== null && this.#lastId !== "" && compareEventIds(id, this.#lastId) < 0)
        this.faults.push(`cursor ${id} after ${this.#lastId}`);
      if (id !== null) this.#lastId = id;
    }
    if (reader.lastEventId !== "") this.lastEventId = reader.lastEventId;
  }

  #event(data: string, id: string | null): void {
    const { n } = (JSON.parse(data) as { payload: { n: number } }).payload;
    if (id === null) this.faults.push(`event ${n} without an id`);
    else if (this.#lastId !== "" && compareEventIds(id, this.#lastId) <= 0)
      this.faults.push(`event ${n} with id ${id} after ${this.#lastId}`);
    if (this.#seen.has(n)) this.faults.push(`event ${n} twice`);
    this.#seen.add(n);
    this.numbers.push(n);
  }
}
