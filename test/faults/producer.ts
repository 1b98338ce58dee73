/** A producer that numbers its events, and repeats a batch with the same Idempotency-Key until it is confirmed. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Gateway, PublishAnswer } from "../support/gateway.ts";

const REPEAT_MS = 100;

export interface BatchOptions {
  /** Kind of each event by its number; `token` otherwise. */
  readonly kindOf?: (n: number) => string;
  /** Bytes of text in each payload. */
  readonly padding?: number;
}

/** A publish body with the numbers from `first` on. */
export function batch(first: number, count: number, { kindOf = () => "token", padding = 0 }: BatchOptions = {}): object {
  const text = "x".repeat(padding);
  const events = Array.from({ length: count }, (_, index) => {
    const n = first + index;
    return { kind: kindOf(n), payload: padding === 0 ? { n } : { n, text } };
  });
  return { events };
}

export interface Attempt {
  readonly answer: PublishAnswer;
  readonly milliseconds: number;
}

/** Publishes once, whatever comes of it. */
export async function tryPublish(gateway: Gateway, runId: string, body: object, key: string = randomUUID()): Promise<Attempt> {
  const began = performance.now();
  const answer = await gateway.publish(runId, body, { "idempotency-key": key });
  return { answer, milliseconds: performance.now() - began };
}

/** Publishes, again and again with the same key, until the gateway confirms; each try may go to another. Returns how many tries it took. */
export async function publishSurely(
  gatewayOf: (attempt: number) => Gateway,
  runId: string,
  body: object,
  limitMs = 60_000,
): Promise<number> {
  const key = randomUUID();
  const deadline = performance.now() + limitMs;
  for (let attempt = 0; ; attempt++) {
    const answer = await gatewayOf(attempt)
      .publish(runId, body, { "idempotency-key": key })
      .catch(() => null);
    if (answer?.status === 200) return attempt + 1;
    if (answer !== null && answer.status !== 503) throw new Error(`a publish was answered ${answer.status}: ${answer.text}`);
    if (performance.now() > deadline) throw new Error(`a publish was not confirmed within ${limitMs / 1_000} s`);
    await pause(REPEAT_MS);
  }
}
