/** When a client command tries again, and how long it waits. */
import { RequestError } from "../../errors.ts";

/** Answers that a later try may better (RFC 9110 15.5.9, 15.6; RFC 6585 4). */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export function mayPass(status: number): boolean {
  return PASSING.has(status);
}

/** Full jitter: many clients that lost the same gateway do not come back at once. `tries` counts from 0. */
export function backOffMs(tries: number, firstMs = FIRST_PAUSE_MS): number {
  const most = Math.min(LONGEST_PAUSE_MS, firstMs * 2 ** Math.min(tries, 20));
  return most / 2 + (Math.random() * most) / 2;
}

/** `Retry-After` in milliseconds (RFC 9110 10.2.3), or null. */
export function retryAfterMs(response: Response): number | null {
  const value = response.headers.get("retry-after");
  if (value === null) return null;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_PAUSE_MS) : null;
}

/** A refusal as an error with the gateway's own words. */
export async function refusal(response: Response): Promise<RequestError> {
  const body = await response.text().catch(() => "");
  return new RequestError("PENSTOCK_REFUSED", response.status, `the gateway answered ${response.status}: ${detailOf(body)}`);
}

/** Why a fetch failed: its cause says it, its own message does not. */
export function connectionFailure(error: unknown): string {
  const { cause, message } = error as Error & { cause?: NodeJS.ErrnoException };
  return cause?.code ?? cause?.message ?? message;
}

function detailOf(body: string): string {
  try {
    const { detail } = JSON.parse(body) as { detail?: unknown };
    return typeof detail === "string" ? detail : JSON.stringify(detail ?? body).slice(0, 500);
  } catch {
    return body.slice(0, 200) || "nothing more";
  }
}
