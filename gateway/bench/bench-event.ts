/** The events that the bench publishes, and how they look when they come back. */

/** Their kind, and so their name on the stream. */
export const BENCH_KIND = "bench";

const PAD = "x".repeat(70_000);

/**
 * An event of a batch, as JSON. `n` counts the events of its run from 0, `sentMicros` is the loader's monotonic clock, and its payload is as
 * long as `payloadBytes`, or as short as it can be.
 */
export function benchEvent(n: number, sentMicros: number, payloadBytes: number): string {
  const payload = `{"n":${n},"t":${sentMicros},"pad":"`;
  return `{"kind":"${BENCH_KIND}","payload":${payload}${PAD.slice(0, Math.max(0, payloadBytes - payload.length - 2))}"}}`;
}

/** What the data of each event of a run begins with, in the gateway's normal form (docs/wire-protocol.md), up to the digits of `n`. */
export function dataPrefix(runId: string): Buffer {
  return Buffer.from(
    `{"pipeline_run_id":"${runId}","step_run_id":null,"step_name":null,"kind":"${BENCH_KIND}","correlation_id":null,"index":null,"payload":{"n":`,
  );
}

/** Reads an event's data that is spelled otherwise than `dataPrefix` says. Null when it is no event of this run and this bench. */
export function readEventData(data: string, runId: string): { readonly n: number; readonly sentMicros: number } | null {
  try {
    const event = JSON.parse(data) as { pipeline_run_id?: unknown; payload?: { n?: unknown; t?: unknown } };
    const { n, t } = event.payload ?? {};
    if (event.pipeline_run_id !== runId || !isCount(n) || !isCount(t)) return null;
    return { n, sentMicros: t };
  } catch {
    return null;
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
