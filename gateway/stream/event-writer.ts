/** Writes a stream event as ZenML's server does: compact, all seven fields, in its order. */
import { Compactor } from "../json/compact.ts";
import {
  CORRELATION_ID,
  EVENT_FIELDS,
  type EventFields,
  INDEX,
  KIND,
  PAYLOAD,
  PIPELINE_RUN_ID,
  STEP_NAME,
  STEP_RUN_ID,
} from "./event-fields.ts";

/** Values that are not written as they came. */
export interface GivenFields {
  /** JSON, or null to take the event's own. */
  readonly pipelineRunId: string | null;
  readonly stepRunId: string | null;
  /** Decimal digits, or null for an event without an index. */
  readonly index: string | null;
}

/** One event at a time: `begin`, then `advance` until it returns true. What the target does not hold is counted, not written. */
export class EventWriter {
  readonly #out: Compactor;
  #bytes: Buffer = Buffer.alloc(0);
  #fields: EventFields | null = null;
  #given: GivenFields = { pipelineRunId: null, stepRunId: null, index: null };
  #field = 0;
  #inValue = false;
  /** Where the event's kind was written, quotes included. */
  kindStart = 0;
  kindEnd = 0;

  constructor(target: Uint8Array) {
    this.#out = new Compactor(target);
  }

  /** Bytes written so far, or that would have been with room enough. */
  get written(): number {
    return this.#out.written;
  }

  /** The event's bytes must stay as they are until it is written. Writing begins at the target's start, behind `prefix`. */
  begin(bytes: Buffer, fields: EventFields, given: GivenFields, prefix: Uint8Array): void {
    this.#bytes = bytes;
    this.#fields = fields;
    this.#given = given;
    this.#field = 0;
    this.#inValue = false;
    this.#out.written = 0;
    this.#out.copy(prefix, 0, prefix.length);
  }

  /** Goes on for `maxBytes` of input a field, or a few more; true when the event is written. */
  advance(maxBytes: number = 0x3fffffff): boolean {
    const fields = this.#fields as EventFields;
    for (; this.#field < EVENT_FIELDS.length; this.#field++) {
      const field = this.#field;
      if (!this.#inValue && !this.#beginValue(field, fields)) continue;
      this.#inValue = true;
      if (!this.#out.advance(maxBytes)) return false;
      this.#inValue = false;
      if (field === KIND) this.kindEnd = this.#out.written;
    }
    this.#out.copy(CLOSE, 0, 1);
    this.#fields = null;
    this.#bytes = NO_BYTES;
    return true;
  }

  /** Writes a field's name, and its value unless that has to be brought into normal form; true in that case. */
  #beginValue(field: number, fields: EventFields): boolean {
    const out = this.#out;
    const name = NAMES[field] as Uint8Array;
    out.copy(name, 0, name.length);
    if (field === KIND) this.kindStart = out.written;
    const text = this.#givenText(field, fields);
    if (text !== null) {
      out.ascii(text);
      return false;
    }
    const start = fields.start(field);
    const end = fields.end(field);
    if (fields.normal[field]) {
      out.copy(this.#bytes, start, end);
      if (field === KIND) this.kindEnd = out.written;
      return false;
    }
    out.begin(this.#bytes, start, end);
    return true;
  }

  #givenText(field: number, fields: EventFields): string | null {
    switch (field) {
      case PIPELINE_RUN_ID:
        return this.#given.pipelineRunId;
      case INDEX:
        return this.#given.index ?? "null";
      case STEP_RUN_ID:
        if (this.#given.stepRunId !== null) return this.#given.stepRunId;
        break;
      case PAYLOAD:
        return fields.start(field) < 0 ? "{}" : null;
      case STEP_NAME:
      case CORRELATION_ID:
        break;
      default:
        return null;
    }
    return fields.start(field) < 0 ? "null" : null;
  }
}

const NO_BYTES = Buffer.alloc(0);
const NAMES: readonly Uint8Array[] = EVENT_FIELDS.map((name, n) => Buffer.from(`${n === 0 ? "{" : ","}"${name}":`));
const CLOSE = Buffer.from("}");
