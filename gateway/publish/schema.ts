/** What an event must be, as ZenML's StreamEvent has it; messages name the field and what it takes, and never repeat what came. */

import { parseRunId } from "../../protocol/run-id.ts";
import { MAX_FRAME_BYTES } from "../../protocol/wire.ts";
import { RequestError } from "../errors.ts";
import { readText } from "../json/text.ts";
import {
  CORRELATION_ID,
  EVENT_FIELDS,
  INDEX,
  KIND,
  PAYLOAD,
  PIPELINE_RUN_ID,
  readIndex,
  STEP_NAME,
  STEP_RUN_ID,
  typeAt,
  type ValueType,
} from "../stream/event-fields.ts";
import type { GivenFields } from "../stream/event-writer.ts";
import type { BatchItem } from "./batch-layout.ts";

/** An event that keeps to the schema. */
export interface CheckedEvent {
  readonly item: BatchItem;
  readonly given: GivenFields;
  /** True when it says that it belongs to another run. */
  readonly isOfOtherRun: boolean;
}

/** `runId` is canonical. Throws RequestError 422. */
export function checkEvent(bytes: Buffer, item: BatchItem, place: number, runId: string): CheckedEvent {
  if (typeAt(bytes, item.start) !== "object") throw invalid(`events[${place}] must be an object.`);
  const check = new FieldCheck(bytes, item, place);
  const otherRun =
    check.type(PIPELINE_RUN_ID, ["absent", "string"], "a string, or be left out") === "string" && !check.isRun(runId);
  const stepRunId = check.stepRunId();
  check.text(STEP_NAME, true);
  check.text(KIND, false);
  check.text(CORRELATION_ID, true);
  const index = check.index();
  check.type(PAYLOAD, ["absent", "object"], "an object, or be left out");
  return { item, given: { pipelineRunId: `"${runId}"`, stepRunId, index }, isOfOtherRun: otherRun };
}

export function invalid(message: string): RequestError {
  return new RequestError("PENSTOCK_INVALID_BATCH", 422, message);
}

class FieldCheck {
  readonly #bytes: Buffer;
  readonly #item: BatchItem;
  readonly #place: number;

  constructor(bytes: Buffer, item: BatchItem, place: number) {
    this.#bytes = bytes;
    this.#item = item;
    this.#place = place;
  }

  type(field: number, allowed: readonly ValueType[], wording: string): ValueType {
    const type = typeAt(this.#bytes, this.#start(field));
    if (!allowed.includes(type)) throw this.#wrong(field, wording);
    return type;
  }

  text(field: number, mayBeNull: boolean): void {
    const type = this.type(field, mayBeNull ? OPTIONAL_TEXT : ["string"], mayBeNull ? "a string or null" : "a string");
    // A lone surrogate can only come as an escape, which is never normal. What is too long for any frame is refused for that.
    if (type !== "string" || this.#item.fields.normal[field] || this.#length(field) > LONGEST_TEXT) return;
    if (!this.#read(field).isWellFormed()) throw this.#wrong(field, "free of lone surrogates: they are not Unicode text");
  }

  isRun(runId: string): boolean {
    if (this.#length(PIPELINE_RUN_ID) > LONGEST_ID) return false;
    const text = this.#read(PIPELINE_RUN_ID);
    return text === runId || parseRunId(text, "any") === runId;
  }

  /** The id as JSON in its canonical spelling; null when there is none. */
  stepRunId(): string | null {
    if (this.type(STEP_RUN_ID, OPTIONAL_TEXT, "a UUID or null") !== "string") return null;
    const uuid = this.#length(STEP_RUN_ID) <= LONGEST_ID ? parseRunId(this.#read(STEP_RUN_ID), "uuid") : null;
    if (uuid === null) throw this.#wrong(STEP_RUN_ID, "a UUID or null");
    return `"${uuid}"`;
  }

  index(): string | null {
    if (NONE.includes(typeAt(this.#bytes, this.#start(INDEX)))) return null;
    const digits = readIndex(this.#bytes, this.#start(INDEX), this.#item.fields.end(INDEX));
    if (digits === null) throw this.#wrong(INDEX, "an integer of at most 4300 digits, or null");
    return digits;
  }

  #read(field: number): string {
    return readText(this.#bytes, this.#start(field), this.#item.fields.end(field));
  }

  #start(field: number): number {
    return this.#item.fields.start(field);
  }

  #length(field: number): number {
    return this.#item.fields.end(field) - this.#start(field);
  }

  #wrong(field: number, wording: string): RequestError {
    return invalid(`events[${this.#place}].${EVENT_FIELDS[field]} must be ${wording}.`);
  }
}

const NONE: readonly ValueType[] = ["absent", "null"];
const OPTIONAL_TEXT: readonly ValueType[] = ["absent", "null", "string"];
/** A character takes at most six bytes in JSON for each byte in a frame. */
const LONGEST_TEXT = MAX_FRAME_BYTES * 6;
/** `urn:uuid:` and a UUID, or a name of 128 characters, all of it written as escapes. */
const LONGEST_ID = 128 * 6 + 2;
