import { setTimeout as wait } from "node:timers/promises";
import { PenstockError } from "../../errors.ts";
import { backOffMs, connectionFailure, mayPass, refusal, retryAfterMs } from "./retry.ts";
import type { Target } from "./target.ts";

/** The gateway did not take it in the time that was given. */
export class GaveUpError extends PenstockError {
  constructor(message: string, seconds: number) {
    super("PENSTOCK_GAVE_UP", `gave up after ${seconds} s: ${message}`);
  }
}

export interface PostRequest {
  readonly target: Target;
  /** Below the run: `/events`. */
  readonly path: string;
  readonly body: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly retrySeconds: number;
  /** Hears why it waits. */
  notice(message: string): void;
}

const ANSWER_LIMIT_MS = 30_000;

/** POSTs until it is answered; every try carries the same headers, an Idempotency-Key too. Throws RequestError or GaveUpError. */
export async function post({ target, path, body, headers, retrySeconds, notice }: PostRequest): Promise<unknown> {
  const deadline = performance.now() + retrySeconds * 1_000;
  for (let tries = 0; ; tries++) {
    let problem: string;
    let pauseMs = backOffMs(tries);
    try {
      const response = await fetch(target.runUrl + path, {
        method: "POST",
        headers: { ...target.headers, ...(body === null ? {} : { "content-type": "application/json" }), ...headers },
        body,
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
      });
      if (response.ok) return await response.json();
      if (!mayPass(response.status)) throw await refusal(response);
      pauseMs = retryAfterMs(response) ?? pauseMs;
      problem = (await refusal(response)).message;
    } catch (error) {
      if (error instanceof PenstockError) throw error;
      problem = connectionFailure(error);
    }
    if (performance.now() + pauseMs > deadline) throw new GaveUpError(problem, retrySeconds);
    notice(`${problem}; trying again in ${(pauseMs / 1_000).toFixed(1)} s`);
    await wait(pauseMs);
  }
}
