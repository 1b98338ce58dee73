/** Follows one run over as many connections as it takes. */
import { setTimeout as wait } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import { PenstockError } from "../../errors.ts";
import { GaveUpError } from "./post.ts";
import { backOffMs, connectionFailure, mayPass, refusal, retryAfterMs } from "./retry.ts";
import type { Target } from "./target.ts";

export interface Frame {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

export interface FollowRequest {
  readonly target: Target;
  /** Query of the first connection: filters, `since`, `tail`. */
  readonly query: URLSearchParams;
  /** Give up after so long without a connection; null: never. */
  readonly retrySeconds: number | null;
  /** Takes a frame; what it resolves with later holds the stream back. */
  show(frame: Frame): void | Promise<void>;
  notice(message: string): void;
}

/** A gateway sends a heartbeat each 30 s unless told otherwise; a connection silent for longer than this is dead. */
const SILENCE_LIMIT_MS = 90_000;
const RECONNECT_MS = 1_000;

/** Resolves when the run has ended. Throws RequestError when the gateway refuses for good, GaveUpError. */
export async function follow(request: FollowRequest): Promise<void> {
  const place: Place = { lastId: null, retryMs: RECONNECT_MS, heard: false };
  let tries = 0;
  let lastUp = performance.now();
  for (;;) {
    let pauseMs: number | null = null;
    let problem = "the stream ended here";
    try {
      place.heard = false;
      const silence = new AbortController();
      const response = await connect(request, place.lastId, silence);
      if (response.ok && response.body !== null) {
        if (await read(response.body, request, place, silence)) return;
        if (place.heard) {
          tries = 0;
          lastUp = performance.now();
        }
      } else if (mayPass(response.status)) {
        pauseMs = retryAfterMs(response);
        problem = (await refusal(response)).message;
      } else throw await refusal(response);
    } catch (error) {
      if (error instanceof PenstockError) throw error;
      problem = connectionFailure(error);
      if (place.heard) lastUp = performance.now();
    }
    pauseMs ??= tries === 0 ? place.retryMs : backOffMs(tries, place.retryMs);
    tries++;
    const { retrySeconds } = request;
    if (retrySeconds !== null && performance.now() + pauseMs > lastUp + retrySeconds * 1_000)
      throw new GaveUpError(problem, retrySeconds);
    request.notice(`${problem}; trying again in ${(pauseMs / 1_000).toFixed(1)} s`);
    await wait(pauseMs);
  }
}

interface Place {
  lastId: string | null;
  /** As the gateway asks by `retry:`. */
  retryMs: number;
  /** Something came on the present connection. */
  heard: boolean;
}

async function connect({ target, query }: FollowRequest, lastId: string | null, silence: AbortController): Promise<Response> {
  const url = new URL(`${target.runUrl}/events/stream`);
  for (const [name, value] of query) {
    // A position that was heard since stands for both.
    if (lastId === null || (name !== "since" && name !== "tail")) url.searchParams.append(name, value);
  }
  const headers = { ...target.headers, accept: "text/event-stream", ...(lastId === null ? {} : { "last-event-id": lastId }) };
  const limit = setTimeout(() => silence.abort(new Error("no answer")), SILENCE_LIMIT_MS);
  try {
    return await fetch(url, { headers, signal: silence.signal });
  } finally {
    clearTimeout(limit);
  }
}

/** True when the run has ended. */
async function read(
  body: ReadableStream<Uint8Array>,
  request: FollowRequest,
  place: Place,
  silence: AbortController,
): Promise<boolean> {
  const frames: Frame[] = [];
  const parser = createParser({
    onEvent: ({ id, event, data }) => frames.push({ id: id ?? null, event: event ?? "message", data }),
    onRetry: (ms) => {
      place.retryMs = Math.min(ms, 30_000);
    },
  });
  const decoder = new TextDecoder();
  const limit = setTimeout(() => silence.abort(new Error("the connection went silent")), SILENCE_LIMIT_MS);
  try {
    for await (const chunk of body) {
      limit.refresh();
      place.heard = true;
      parser.feed(decoder.decode(chunk, { stream: true }));
      for (const frame of frames.splice(0)) {
        if (frame.id !== null) place.lastId = frame.id;
        await request.show(frame);
        if (frame.event === "end") return true;
      }
    }
    return false;
  } finally {
    clearTimeout(limit);
  }
}
