/** From a broker's entry to what a subscriber may get of it. A hot path: once an event and worker. */
import { isUtf8 } from "node:buffer";
import { RESERVED_KINDS } from "../../protocol/wire.ts";
import type { StoredEntry } from "../broker/broker.ts";
import { compactJson } from "../json/compact.ts";
import { NameTable } from "../json/names.ts";
import { JsonScanner, JsonSyntaxError, type ValueVisitor } from "../json/scan.ts";
import { readText } from "../json/text.ts";
import {
  CORRELATION_ID,
  EVENT_FIELD_NAMES,
  EVENT_FIELDS,
  EventFields,
  INDEX,
  KIND,
  PAYLOAD,
  PIPELINE_RUN_ID,
  readIndex,
  STEP_NAME,
  STEP_RUN_ID,
  typeAt,
  type ValueType,
} from "./event-fields.ts";
import { EventWriter } from "./event-writer.ts";

export interface DecodedEvent {
  readonly type: "event";
  /** Safe for an `event:` line: no CR, LF or NUL, and not reserved. May be empty. */
  readonly kind: string;
  readonly stepName: string | null;
  readonly correlationId: string | null;
  /** The event as compact JSON on one line, in ZenML's field order; may share memory with the entry. Must not be changed. */
  readonly data: Buffer;
}

/** The run has ended. */
export interface DecodedEnd {
  readonly type: "end";
}

/** An entry that cannot be read or cannot travel; passed over with a `cursor` frame. */
export interface DecodedUnknown {
  readonly type: "unknown";
  /** Its `type` as text, at most 100 characters; `?` where there is none, and `event` for an event that is wrong inside. */
  readonly unknownType: string;
}

export type Decoded = DecodedEvent | DecodedEnd | DecodedUnknown;

/** Larger entries are unknown: they cannot come by a publish, and a few of them would fill a ring. */
export const MAX_ENTRY_BYTES = 1024 * 1024;

/** Never throws: what cannot be read is `unknown`. */
export function decodeEntry(entry: StoredEntry): Decoded {
  const bytes = entry.payload;
  if (bytes === null || bytes.length > MAX_ENTRY_BYTES || !isUtf8(bytes) || !scan(bytes)) return NOT_JSON;
  const type = typeOf(bytes);
  if (type === "end") return END;
  if (type !== "event") return { type: "unknown", unknownType: type };
  return (typeAt(bytes, layout.eventStart) === "object" ? readEvent(bytes) : null) ?? BAD_EVENT;
}

function scan(bytes: Buffer): boolean {
  layout.begin(bytes);
  scanner.begin(bytes);
  try {
    return scanner.advance();
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false;
    throw error;
  }
}

/** The `type` as ZenML's server names it: `?` for one that is missing or false, in Python's sense. */
function typeOf(bytes: Buffer): string {
  const { typeStart: start, typeEnd: end } = layout;
  if (typeAt(bytes, start) === "string") return readText(bytes, start, end).slice(0, MAX_TYPE_CHARACTERS) || "?";
  if (typeAt(bytes, start) === "absent") return "?";
  const text = compactJson(bytes, start, Math.min(end, start + MAX_TYPE_CHARACTERS)).toString();
  return FALSE_IN_PYTHON.test(text) ? "?" : text;
}

/** The event of the entry just scanned; null when it is none that can travel. */
function readEvent(bytes: Buffer): DecodedEvent | null {
  const { fields } = layout;
  if (typeAt(bytes, fields.start(PIPELINE_RUN_ID)) !== "string" || typeAt(bytes, fields.start(KIND)) !== "string") return null;
  if (
    !OBJECT_OR_ABSENT.includes(typeAt(bytes, fields.start(PAYLOAD))) ||
    !TEXT_OR_NONE.includes(typeAt(bytes, fields.start(STEP_RUN_ID)))
  )
    return null;
  const kind = readText(bytes, fields.start(KIND), fields.end(KIND));
  const stepName = readOptionalText(bytes, fields, STEP_NAME);
  const correlationId = readOptionalText(bytes, fields, CORRELATION_ID);
  if (stepName === undefined || correlationId === undefined || !canTravel(kind)) return null;
  const data =
    layout.isAsPublished() && hasPlainIndex(bytes, fields)
      ? bytes.subarray(layout.eventStart, layout.eventEnd)
      : rewrite(bytes, fields);
  return data === null ? null : { type: "event", kind, stepName, correlationId, data };
}

/** Undefined when it is neither text nor null. Lone surrogates are no text: nothing that reads UTF-8 could ask for them. */
function readOptionalText(bytes: Buffer, fields: EventFields, field: number): string | null | undefined {
  const start = fields.start(field);
  const type = typeAt(bytes, start);
  if (type === "absent" || type === "null") return null;
  if (type !== "string") return undefined;
  const text = readText(bytes, start, fields.end(field));
  return text.isWellFormed() ? text : undefined;
}

function canTravel(kind: string): boolean {
  return !UNSAFE_IN_A_LINE.test(kind) && !RESERVED.has(kind) && kind.isWellFormed();
}

function hasPlainIndex(bytes: Buffer, fields: EventFields): boolean {
  const start = fields.start(INDEX);
  if (typeAt(bytes, start) === "null") return true;
  if (typeAt(bytes, start) !== "number") return false;
  for (let position = start + 1; position < fields.end(INDEX); position++) {
    if ((bytes[position] as number) < 0x30 || (bytes[position] as number) > 0x39) return false;
  }
  return true;
}

/** The event in ZenML's order and in normal form; null when its index is no integer. */
function rewrite(bytes: Buffer, fields: EventFields): Buffer | null {
  const start = fields.start(INDEX);
  const isNone = NONE.includes(typeAt(bytes, start));
  const index = isNone ? null : readIndex(bytes, start, fields.end(INDEX));
  if (index === null && !isNone) return null;
  // The normal form is at most three times as long, and missing fields are added.
  const target = Buffer.allocUnsafe(bytes.length * 3 + 256);
  const writer = new EventWriter(target);
  writer.begin(bytes, fields, { pipelineRunId: null, stepRunId: null, index }, NO_BYTES);
  writer.advance();
  return target.subarray(0, writer.written);
}

/** What the scanner has found of one entry. */
class EntryLayout implements ValueVisitor {
  typeStart = -1;
  typeEnd = -1;
  eventStart = -1;
  eventEnd = -1;
  /** Fields of the event. */
  fields = new EventFields();
  /** Fields of the member that is being scanned. */
  #open = new EventFields();
  #bytes: Buffer = NO_BYTES;
  /** Members seen in the very order in which a publish writes them; -1 once one was out of order, unknown or double. */
  #inOrder = 0;
  #isNormal = false;

  begin(bytes: Buffer): void {
    this.#bytes = bytes;
    this.typeStart = -1;
    this.eventStart = -1;
    this.#open.clear();
    this.#inOrder = 0;
  }

  value(depth: number, keyStart: number, keyEnd: number, start: number, end: number, normal: boolean): void {
    if (depth === 2) this.#inEvent(keyStart, keyEnd, start, end, normal);
    else if (depth === 1) this.#inRoot(keyStart, keyEnd, start, end);
    else this.#isNormal = normal;
  }

  /** True when the event's bytes are what a publish would have stored. */
  isAsPublished(): boolean {
    return this.#isNormal && this.#inOrder === EVENT_FIELDS.length + 2;
  }

  #inEvent(keyStart: number, keyEnd: number, start: number, end: number, normal: boolean): void {
    const field = keyStart < 0 ? -1 : EVENT_FIELD_NAMES.find(this.#bytes, keyStart, keyEnd);
    if (field >= 0) this.#open.set(field, start, end, normal);
    this.#inOrder = field >= 0 && this.#inOrder === field + 1 ? field + 2 : -1;
  }

  #inRoot(keyStart: number, keyEnd: number, start: number, end: number): void {
    const member = keyStart < 0 ? -1 : ENTRY_NAMES.find(this.#bytes, keyStart, keyEnd);
    const place = member === TYPE ? 0 : EVENT_FIELDS.length + 1;
    this.#inOrder = member >= 0 && this.#inOrder === place ? place + 1 : -1;
    if (member === TYPE) {
      this.typeStart = start;
      this.typeEnd = end;
    } else if (member === EVENT) {
      this.eventStart = start;
      this.eventEnd = end;
      const fields = this.#open;
      this.#open = this.fields;
      this.fields = fields;
    }
    this.#open.clear();
  }
}

const NO_BYTES = Buffer.alloc(0);
const ENTRY_NAMES = new NameTable(["type", "event"]);
const TYPE = 0;
const EVENT = 1;
const END: DecodedEnd = { type: "end" };
const NOT_JSON: DecodedUnknown = { type: "unknown", unknownType: "?" };
const BAD_EVENT: DecodedUnknown = { type: "unknown", unknownType: "event" };

const MAX_TYPE_CHARACTERS = 100;
const FALSE_IN_PYTHON = /^(?:null|false|-?0(?:\.0+)?(?:[eE][+-]?[0-9]+)?|\[\]|\{\})$/;
const UNSAFE_IN_A_LINE = /[\r\n\0]/;
const RESERVED: ReadonlySet<string> = new Set(RESERVED_KINDS);
const NONE: readonly ValueType[] = ["absent", "null"];
const TEXT_OR_NONE: readonly ValueType[] = ["absent", "null", "string"];
const OBJECT_OR_ABSENT: readonly ValueType[] = ["absent", "object"];

const layout = new EntryLayout();
const scanner = new JsonScanner(layout, 2);
