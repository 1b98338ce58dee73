/** From the body of a publish to the broker frames that it stores. */
import { isUtf8 } from "node:buffer";
import { MAX_BATCH_EVENTS, MAX_FRAME_BYTES, RESERVED_KINDS } from "../../protocol/wire.ts";
import { RequestError } from "../errors.ts";
import { JsonScanner, JsonSyntaxError } from "../json/scan.ts";
import { readText } from "../json/text.ts";
import { EventWriter } from "../stream/event-writer.ts";
import { BATCH_DEPTH, type BatchItem, BatchLayout } from "./batch-layout.ts";
import { type CheckedEvent, checkEvent, invalid } from "./schema.ts";

export interface ParsedBatch {
  /** Broker frames, `{"type":"event","event":{…}}` in normal form, each in memory of its own. */
  readonly entries: Buffer[];
}

/** Deepest nesting of a body, counted in containers. Beyond it, common JSON readers give up (pydantic: 200). */
export const MAX_BODY_DEPTH = 200;
/** Bodies up to here are read at once; of larger ones a slice at a time, and the event loop turns between the slices. */
export const MAX_BYTES_AT_ONCE = 1024 * 1024;

/**
 * Reads a batch for a run, whose id is canonical. All or nothing. Bytes of the body must not change until then. Of a large body that
 * nobody waits for any more (`isOver`) the rest is not read, and no entry comes out.
 *
 * Throws, or rejects with, RequestError, in this order: 400 not UTF-8 or not JSON; 422 against the schema, anywhere; then event by
 * event 400 for another run or a kind that cannot travel, 413 for a frame over 69,632 bytes.
 */
export function parseBatch(body: Buffer, runId: string, isOver = () => false): ParsedBatch | Promise<ParsedBatch> {
  if (body.length > MAX_BYTES_AT_ONCE) return parseInSlices(body, runId, isOver);
  const work = parse(body, runId, sharedScan, sharedWriter, sharedFrame);
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

async function parseInSlices(body: Buffer, runId: string, isOver: () => boolean): Promise<ParsedBatch> {
  // Others are parsed between the slices, so the shared frame will not do.
  const frame = Buffer.allocUnsafe(MAX_FRAME_BYTES);
  const work = parse(body, runId, new BatchScan(), new EventWriter(frame), frame);
  while (!isOver()) {
    const step = work.next();
    if (step.done) return step.value;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { entries: [] };
}

/** Yields about every SLICE_BYTES of work. */
function* parse(body: Buffer, runId: string, scan: BatchScan, writer: EventWriter, frame: Buffer): Generator<void, ParsedBatch> {
  const items = yield* readItems(body, scan);
  const slices = new SliceCounter();
  const events: CheckedEvent[] = [];
  for (const [place, item] of items.entries()) {
    if (slices.isFull(item)) yield;
    events.push(checkEvent(body, item, place, runId));
  }
  const entries: Buffer[] = [];
  for (const [place, event] of events.entries()) {
    if (slices.isFull(event.item)) yield;
    if (event.isOfOtherRun) throw otherRun(place);
    writer.begin(body, event.item.fields, event.given, FRAME_START);
    while (!writer.advance(SLICE_BYTES)) yield;
    checkKind(frame, writer, place);
    const length = writer.written + 1;
    if (length > MAX_FRAME_BYTES) throw tooLarge(length);
    frame[length - 1] = CLOSE_BRACE;
    entries.push(Buffer.from(frame.subarray(0, length)));
  }
  return { entries };
}

/** What a body is read with: again for each one that is read at once. */
class BatchScan {
  readonly layout = new BatchLayout();
  readonly scanner = new JsonScanner(this.layout, BATCH_DEPTH);
}

function* readItems(body: Buffer, { layout, scanner }: BatchScan): Generator<void, readonly BatchItem[]> {
  if (!isUtf8(body)) throw notJson("The body is not valid UTF-8; send JSON in UTF-8.");
  if (body[0] === 0xef) throw notJson("The body begins with a byte order mark; leave it out (RFC 8259 8.1).");
  layout.begin(body);
  scanner.begin(body);
  try {
    while (!scanner.advance(SLICE_BYTES)) yield;
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw notJson(`The body is not JSON (RFC 8259; NaN and Infinity are not): it goes wrong at byte ${error.offset}.`);
  }
  if (scanner.deepest > MAX_BODY_DEPTH)
    throw invalid(`The body is nested ${scanner.deepest} levels deep; at most ${MAX_BODY_DEPTH} are taken.`);
  if (layout.bodyType !== "object") throw invalid('The body must be an object: {"events": […]}.');
  if (layout.eventsType !== "array") throw invalid("events must be an array of events.");
  if (layout.count > MAX_BATCH_EVENTS) {
    throw invalid(`events has ${layout.count} items; send at most ${MAX_BATCH_EVENTS} in one request.`);
  }
  return layout.takeItems();
}

/** Says when so many bytes of events have been worked on that others should have a turn. */
class SliceCounter {
  #bytes = 0;

  isFull(next: BatchItem): boolean {
    this.#bytes += next.end - next.start;
    if (this.#bytes < SLICE_BYTES) return false;
    this.#bytes = 0;
    return true;
  }
}

/** A kind becomes an `event:` line, whose bytes the server alone may end or reserve. */
function checkKind(frame: Buffer, writer: EventWriter, place: number): void {
  // Too long to have been written: refused for its size.
  if (writer.kindEnd > frame.length) return;
  const kind = readText(frame, writer.kindStart, writer.kindEnd);
  if (UNSAFE_IN_A_LINE.test(kind)) {
    throw new RequestError("PENSTOCK_UNSAFE_KIND", 400, `events[${place}].kind must not contain CR, LF or NUL; take them out.`);
  }
  if (RESERVED.has(kind)) {
    const names = RESERVED_KINDS.join(", ");
    throw new RequestError(
      "PENSTOCK_RESERVED_KIND",
      400,
      `events[${place}].kind is a name that only the server uses (${names}); choose another.`,
    );
  }
}

function otherRun(place: number): RequestError {
  const message = `events[${place}].pipeline_run_id is not the run of the URL; leave it out, or publish to that run's own URL.`;
  return new RequestError("PENSTOCK_RUN_MISMATCH", 400, message);
}

function tooLarge(bytes: number): RequestError {
  return new RequestError("PENSTOCK_EVENT_TOO_LARGE", 413, `Event exceeds ${MAX_FRAME_BYTES} bytes (was ${bytes}).`);
}

function notJson(message: string): RequestError {
  return new RequestError("PENSTOCK_INVALID_JSON", 400, message);
}

const FRAME_START = Buffer.from('{"type":"event","event":');
const CLOSE_BRACE = 0x7d;
const UNSAFE_IN_A_LINE = /[\r\n\0]/;
const RESERVED: ReadonlySet<string> = new Set(RESERVED_KINDS);
const SLICE_BYTES = 256 * 1024;
const sharedFrame = Buffer.allocUnsafe(MAX_FRAME_BYTES);
const sharedWriter = new EventWriter(sharedFrame);
const sharedScan = new BatchScan();
