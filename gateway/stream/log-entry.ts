/** What a ring or a page of history holds, in the order of the stream. */
import type { EventId } from "../../protocol/event-id.ts";
import type { Gap, StoredEntry } from "../broker/broker.ts";
import { decodeEntry } from "./decode.ts";
import { encodeFrame } from "./frame.ts";

export const EVENT = 0;
/** An entry that nobody can read: its frame goes to everybody, whatever their filter. */
export const UNKNOWN = 1;
export const END = 2;
/** A mark between entries: something is missing here, or the broker was away. */
export const GAP = 3;

/** One class for all types, so that the delivery loop sees one shape. */
export class LogEntry {
  readonly type: typeof EVENT | typeof UNKNOWN | typeof END | typeof GAP;
  /** Of the entry; for a gap, of the entry before it ("" when there is none). */
  readonly id: EventId;
  /** The whole SSE frame; empty for END and GAP. */
  readonly frame: Buffer;
  readonly kind: string;
  readonly stepName: string | null;
  readonly correlationId: string | null;
  readonly gap: Gap | null;
  /** For a gap: the id that stands for everything known when it was met (`RunObserver.onGap`). */
  readonly newest: EventId | null;

  constructor(
    type: typeof EVENT | typeof UNKNOWN | typeof END | typeof GAP,
    id: EventId,
    frame: Buffer,
    kind: string,
    stepName: string | null,
    correlationId: string | null,
    gap: Gap | null,
    newest: EventId | null,
  ) {
    this.type = type;
    this.id = id;
    this.frame = frame;
    this.kind = kind;
    this.stepName = stepName;
    this.correlationId = correlationId;
    this.gap = gap;
    this.newest = newest;
  }
}

/** What an entry costs a ring beside its frame, in bytes: 330 of objects and strings, the rest below the Buffer; measured. */
export const ENTRY_OVERHEAD = 640;

const NOTHING = Buffer.alloc(0);

export function logEntryOf(stored: StoredEntry): LogEntry {
  const decoded = decodeEntry(stored);
  if (decoded.type === "event") {
    const frame = encodeFrame(stored.id, decoded);
    const { kind, stepName, correlationId } = decoded;
    return new LogEntry(EVENT, stored.id, frame, shared(kind)!, shared(stepName), shared(correlationId), null, null);
  }
  if (decoded.type === "end") return new LogEntry(END, stored.id, NOTHING, "", null, null, null, null);
  return new LogEntry(UNKNOWN, stored.id, encodeFrame(stored.id, decoded), "", null, null, null, null);
}

export function gapEntry(gap: Gap, after: EventId, newest: EventId | null): LogEntry {
  return new LogEntry(GAP, after, NOTHING, "", null, null, gap, newest);
}

/** The events of a run say the same names over and over; one string for all of them is enough. */
function shared(text: string | null): string | null {
  if (text === null) return null;
  const slot = text.length & (NAMES.length - 1);
  if (NAMES[slot] === text) return NAMES[slot];
  NAMES[slot] = text;
  return text;
}

const NAMES = new Array<string>(64).fill("");
