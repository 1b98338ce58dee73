/** A client that reads only while it is told to, and keeps no event: for streams of many megabytes. */
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { compareEventIds } from "../../protocol/event-id.ts";
import type { Gateway } from "../support/gateway.ts";
import { waitFor } from "../support/wait-for.ts";
import type { FollowedGap } from "./follower.ts";

export interface PacedReaderOptions {
  readonly query?: string;
  readonly lastEventId?: string;
}

const LIMIT_MS = 10_000;

export class PacedReader {
  readonly status: number;
  /** `n` of each event's payload, in order. */
  readonly numbers: number[] = [];
  readonly gaps: FollowedGap[] = [];
  /** Ids that did not rise. */
  readonly faults: string[] = [];
  /** Longest time from an event's id, which is Redis' clock, to its arrival. */
  maxDelayMs = 0;
  lastEventId = "";
  /** The run ended. */
  hasEnd = false;
  /** The body ended cleanly, or broke off. A client that does not read cannot know. */
  isOver = false;
  isBroken = false;

  readonly #outgoing: ClientRequest;
  readonly #incoming: IncomingMessage;
  #rest = "";
  #event = "";
  #isBegun = false;

  private constructor(outgoing: ClientRequest, incoming: IncomingMessage) {
    this.#outgoing = outgoing;
    this.#incoming = incoming;
    this.status = incoming.statusCode ?? 0;
    incoming.on("end", () => {
      this.isOver = true;
    });
    incoming.on("error", () => {
      this.isOver = this.isBroken = true;
    });
  }

  /** Resolves with the head; nothing of the body is read yet. */
  static open(gateway: Gateway, runId: string, options: PacedReaderOptions = {}): Promise<PacedReader> {
    const { query = "", lastEventId } = options;
    const headers = { accept: "text/event-stream", ...(lastEventId !== undefined && { "last-event-id": lastEventId }) };
    return new Promise((resolve, reject) => {
      const outgoing = request(gateway.runUrl(runId, `/events/stream${query}`), { headers, agent: false });
      const limit = setTimeout(() => outgoing.destroy(new Error("no answer in time")), LIMIT_MS);
      outgoing.on("error", reject);
      outgoing.on("response", (incoming) => {
        clearTimeout(limit);
        resolve(new PacedReader(outgoing, incoming));
      });
      outgoing.end();
    });
  }

  /** Begins to read, or goes on. */
  read(): this {
    if (!this.#isBegun) {
      this.#isBegun = true;
      this.#incoming.setEncoding("latin1").on("data", (text: string) => this.#take(text));
    }
    this.#incoming.resume();
    return this;
  }

  pause(): void {
    this.#incoming.pause();
  }

  close(): void {
    this.#outgoing.destroy();
  }

  async until(what: string, holds: () => boolean, limitMs?: number): Promise<void> {
    await waitFor(what, holds, limitMs).catch((error: Error) => {
      const last = this.numbers.slice(-5).join(", ");
      throw new Error(
        `${error.message}; ${this.numbers.length} events, the last ${last}; gaps ${JSON.stringify(this.gaps)}; ` +
          `over ${this.isOver}, broken ${this.isBroken}`,
      );
    });
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) this.#id(line.slice(4));
      else if (line.startsWith("event: ")) this.#event = line.slice(7);
      else if (line.startsWith("data: ")) this.#data(line.slice(6));
    }
  }

  #id(id: string): void {
    const isCursorAgain = id === this.lastEventId;
    if (this.lastEventId !== "" && !isCursorAgain && compareEventIds(id, this.lastEventId) < 0)
      this.faults.push(`${id} after ${this.lastEventId}`);
    this.lastEventId = id;
    this.maxDelayMs = Math.max(this.maxDelayMs, Date.now() - Number(id.slice(0, id.indexOf("-"))));
  }

  #data(data: string): void {
    if (this.#event === "gap") this.gaps.push(JSON.parse(data) as FollowedGap);
    else if (this.#event === "end") this.hasEnd = true;
    else if (this.#event !== "cursor") this.numbers.push(Number(/"n":(\d+)/.exec(data)?.[1] ?? -1));
  }
}
