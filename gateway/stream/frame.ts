/**
 * The exact bytes of every frame of an event stream (docs/wire-protocol.md; field rules: WHATWG HTML 9.2.6).
 * Nothing else writes `id:`, `event:` or `data:` lines.
 */
import type { EventId } from "../../protocol/event-id.ts";
import type { Gap } from "../broker/broker.ts";
import type { DecodedEvent, DecodedUnknown } from "./decode.ts";

/** The true end of a run: one block, with a long `retry`, so that a page that forgets `close()` does not come back at once. */
export const END_FRAME: Buffer = Buffer.from("retry: 3600000\nevent: end\ndata: {}\n\n");
/** The end that ZenML's server sends when it shuts down (`drain.frames: zenml`): clients are meant to come back soon. */
export const SHUTDOWN_END_FRAME: Buffer = Buffer.from("event: end\ndata: {}\n\n");
/** The stream cannot go on; a clean end of the body follows, and a reconnect with the last id continues. */
export const STREAM_FAILED_FRAME: Buffer = Buffer.from('event: error\ndata: {"reason":"stream_failed"}\n\n');
/** The right to read has ended; a clean end of the body follows. */
export const UNAUTHORIZED_FRAME: Buffer = Buffer.from('event: error\ndata: {"reason":"unauthorized"}\n\n');
/** The heartbeat. */
export const PING_FRAME: Buffer = Buffer.from(": ping\n\n");

/**
 * One entry of the stream as subscribers get it: an event, or the `cursor` frame that stands for an entry nobody can read.
 * Encoded once and shared by all subscribers.
 */
export function encodeFrame(id: EventId, decoded: DecodedEvent | DecodedUnknown): Buffer {
  return decoded.type === "event" ? eventFrame(id, decoded.kind, decoded.data) : unknownFrame(id, decoded.unknownType);
}

/** `data` is one line of JSON; `kind` has no CR, LF or NUL (`decodeEntry` sees to both). */
export function eventFrame(id: EventId, kind: string, data: Uint8Array): Buffer {
  const head = `id: ${id}\nevent: ${kind}\ndata: `;
  const headBytes = Buffer.byteLength(head);
  // Memory of its own: out of Node's shared pool, one frame in the ring of a cold run would hold 8 KiB of others.
  const frame = Buffer.allocUnsafeSlow(headBytes + data.length + 2);
  frame.write(head, 0);
  frame.set(data, headBytes);
  frame[frame.length - 2] = LF;
  frame[frame.length - 1] = LF;
  return frame;
}

/** Moves the resume position past entries that this reader does not get. */
export function cursorFrame(id: EventId): Buffer {
  return Buffer.from(`id: ${id}\nevent: cursor\ndata: {}\n\n`, "latin1");
}

/** Moves the resume position past an entry that nobody can read, and names its type. ASCII only, spaced as ZenML writes it. */
export function unknownFrame(id: EventId, unknownType: string): Buffer {
  return Buffer.from(`id: ${id}\nevent: cursor\ndata: {"unknown_type": ${asciiJson(unknownType)}}\n\n`, "latin1");
}

/** Tells what was lost here. Carries no id: a reconnect must not skip what is behind the gap. */
export function gapFrame(gap: Gap): Buffer {
  const from = gap.from === null ? "null" : `"${gap.from}"`;
  const to = gap.to === null ? "null" : `"${gap.to}"`;
  return Buffer.from(
    `event: gap\ndata: {"reason": "${gap.reason}", "from": ${from}, "to": ${to}, "missed": ${gap.missed ?? "null"}}\n\n`,
    "latin1",
  );
}

/**
 * The first bytes of every stream. No blank line: some Python clients make an empty event of a block that holds no data
 * (docs/wire-protocol.md), so these two lines become part of the first frame's block.
 */
export function openingLines(retryMs: number): Buffer {
  openings[retryMs] ??= Buffer.from(`retry: ${retryMs}\n: ok\n`, "latin1");
  return openings[retryMs];
}

/** By the time in them, which is one of a thousand: made once, for they cost a connect a microsecond. */
const openings: (Buffer | undefined)[] = [];

/** When to come back; the last line before a clean end of the body. No blank line, for the same reason. */
export function retryLine(retryMs: number): Buffer {
  return Buffer.from(`retry: ${retryMs}\n`, "latin1");
}

const LF = 10;

function asciiJson(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
