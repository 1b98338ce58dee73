/** Publishes single events, each until the gateway has confirmed it. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { DemoEvent } from "./pipeline.ts";

const RETRY_MS = 500;
const ANSWER_LIMIT_MS = 10_000;

/**
 * Sends one event. A lost answer or a 5xx is tried again with the same Idempotency-Key, so the event is stored once.
 * Throws when the gateway refuses it, and when `signal` aborts.
 */
export async function publish(gateway: string, runId: string, event: DemoEvent, signal: AbortSignal): Promise<void> {
  const body = JSON.stringify({ events: [event] });
  const headers = { "content-type": "application/json", "idempotency-key": randomUUID() };
  for (;;) {
    const answer = await attempt(`${gateway}/api/v1/runs/${runId}/events`, body, headers, signal);
    if (answer === "stored") return;
    if (answer !== "retry") throw new Error(`The gateway refused an event: ${answer}`);
    await delay(RETRY_MS, undefined, { signal });
  }
}

async function attempt(url: string, body: string, headers: Record<string, string>, signal: AbortSignal): Promise<string> {
  let response: Response;
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
    response = await fetch(url, { method: "POST", headers, body, signal: limit });
  } catch (error) {
    if (signal.aborted) throw error;
    return "retry";
  }
  const text = await response.text();
  if (response.ok) return "stored";
  return response.status >= 500 || response.status === 429 ? "retry" : `${response.status} ${text}`;
}
