/** A client that reads one event stream, keeps all that came, and waits for facts with a limit. Decodes by WHATWG HTML 9.2.6. */
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";

export interface SseEvent {
  readonly event: string;
  readonly data: string;
  /** Last event id in force when the event was dispatched. */
  readonly lastEventId: string;
  /** Id that this event's own block carried; null without one. */
  readonly id: string | null;
  /** `Date.now()` at its arrival. */
  readonly at: number;
}

export interface OpenStreamOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly lastEventId?: string;
  readonly token?: string;
  /** Most milliseconds until the head; 10,000. */
  readonly limitMs?: number;
}

const DEFAULT_LIMIT_MS = 10_000;

/** Opens a stream and resolves with its head; the status is the caller's to check. */
export function openStream(url: string, options: OpenStreamOptions = {}): Promise<SseReader> {
  const headers: Record<string, string> = { accept: "text/event-stream", ...options.headers };
  if (options.lastEventId !== undefined) headers["last-event-id"] = options.lastEventId;
  if (options.token !== undefined) headers["authorization"] = `Bearer ${options.token}`;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { headers, agent: false });
    const limit = setTimeout(
      () => outgoing.destroy(new Error(`no answer from ${url} in time`)),
      options.limitMs ?? DEFAULT_LIMIT_MS,
    );
    outgoing.on("response", (incoming) => {
      clearTimeout(limit);
      resolve(new SseReader(outgoing, incoming));
    });
    outgoing.on("error", (error) => {
      clearTimeout(limit);
      reject(error);
    });
    outgoing.end();
  });
}

export class SseReader {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly events: SseEvent[] = [];
  readonly comments: string[] = [];
  readonly retries: number[] = [];
  /** Every id line of the body, in order. */
  readonly ids: string[] = [];
  /** All of the body so far. */
  text = "";
  lastEventId = "";
  /** The body ended cleanly. */
  ended = false;
  /** The body broke off. */
  failure: Error | null = null;

  readonly #outgoing: ClientRequest;
  readonly #waiters = new Set<() => void>();
  #rest = "";
  #block: { data: string[]; event: string; id: string | null } = { data: [], event: "", id: null };

  constructor(outgoing: ClientRequest, incoming: IncomingMessage) {
    this.#outgoing = outgoing;
    this.status = incoming.statusCode ?? 0;
    this.headers = incoming.headers;
    incoming.setEncoding("utf8");
    incoming.on("data", (text: string) => {
      this.#take(text);
      this.#wake();
    });
    incoming.on("end", () => {
      this.ended = incoming.complete;
      this.#wake();
    });
    incoming.on("error", (error) => {
      this.failure = error;
      this.#wake();
    });
  }

  /** Events that producers published: all but those that the server speaks itself. */
  get published(): SseEvent[] {
    return this.events.filter(({ event }) => !["end", "gap", "error", "cursor", "system"].includes(event));
  }

  /** Payloads of the published events. */
  get payloads(): unknown[] {
    return this.published.map(({ data }) => (JSON.parse(data) as { payload: unknown }).payload);
  }

  get gaps(): Record<string, unknown>[] {
    return this.of("gap").map(({ data }) => JSON.parse(data) as Record<string, unknown>);
  }

  of(event: string): SseEvent[] {
    return this.events.filter((each) => each.event === event);
  }

  /** Resolves with the first value of `fact` that is neither null, undefined nor false. Throws with all that came after `limitMs`. */
  waitFor<T>(what: string, fact: () => T | null | undefined | false, limitMs = DEFAULT_LIMIT_MS): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const value = fact();
        if (value === null || value === undefined || value === false) return false;
        this.#waiters.delete(look);
        clearTimeout(limit);
        resolve(value);
        return true;
      };
      const limit = setTimeout(() => {
        this.#waiters.delete(look);
        reject(new Error(`${what}: not within ${limitMs} ms; got ${this.#describe()}`));
      }, limitMs);
      if (!look()) this.#waiters.add(look);
    });
  }

  /** The first `count` published events. */
  waitForPublished(count: number, limitMs = DEFAULT_LIMIT_MS): Promise<SseEvent[]> {
    return this.waitFor(`${count} published events`, () => this.published.length >= count && this.published, limitMs);
  }

  waitForEvent(event: string, limitMs = DEFAULT_LIMIT_MS): Promise<SseEvent> {
    return this.waitFor(`an event ${event}`, () => this.of(event)[0], limitMs);
  }

  /** Resolves when the body has ended cleanly. */
  async waitForEnd(limitMs = DEFAULT_LIMIT_MS): Promise<void> {
    await this.waitFor("the end of the body", () => this.ended || this.failure !== null, limitMs);
    if (this.failure !== null) throw this.failure;
  }

  close(): void {
    this.#outgoing.destroy();
  }

  #wake(): void {
    for (const look of [...this.#waiters]) look();
  }

  #describe(): string {
    const state = this.failure ? `failed: ${this.failure.message}` : this.ended ? "ended" : "open";
    return `status ${this.status}, ${this.events.length} events, ${this.comments.length} comments, ${state}; last bytes ${JSON.stringify(this.text.slice(-600))}`;
  }

  #take(text: string): void {
    const first = this.text === "";
    this.text += text;
    let rest = this.#rest + (first ? text.replace(/^\uFEFF/, "") : text);
    for (;;) {
      const line = /^([^\r\n]*)(\r\n|\n|\r(?!$))/.exec(rest);
      if (line === null) break;
      rest = rest.slice(line[0].length);
      this.#line(line[1] ?? "");
    }
    this.#rest = rest;
  }

  #line(line: string): void {
    if (line === "") {
      this.#dispatch();
      return;
    }
    if (line.startsWith(":")) {
      this.comments.push(line.slice(1).trimStart());
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#block.data.push(value);
    else if (field === "event") this.#block.event = value;
    else if (field === "id" && !value.includes("\0")) {
      this.#block.id = value;
      this.ids.push(value);
    } else if (field === "retry" && /^[0-9]+$/.test(value)) this.retries.push(Number(value));
  }

  #dispatch(): void {
    const { data, event, id } = this.#block;
    this.#block = { data: [], event: "", id: null };
    if (id !== null) this.lastEventId = id;
    if (data.length === 0) return;
    this.events.push({ event: event || "message", data: data.join("\n"), lastEventId: this.lastEventId, id, at: Date.now() });
  }
}
