/** The fields of a stream event, and where they lie in the bytes of one. */
import { NameTable } from "../json/names.ts";
import { readText } from "../json/text.ts";

/** In ZenML's order, which is that of the wire. */
export const EVENT_FIELDS = [
  "pipeline_run_id",
  "step_run_id",
  "step_name",
  "kind",
  "correlation_id",
  "index",
  "payload",
] as const;
export const PIPELINE_RUN_ID = 0;
export const STEP_RUN_ID = 1;
export const STEP_NAME = 2;
export const KIND = 3;
export const CORRELATION_ID = 4;
export const INDEX = 5;
export const PAYLOAD = 6;

/** Finds the number of a field by the name of a member. */
export const EVENT_FIELD_NAMES: NameTable = new NameTable(EVENT_FIELDS);

/** Where the values of one event lie. A field that comes twice counts as the later one. */
export class EventFields {
  /** First byte of each value; -1 where the field is absent. */
  readonly starts: number[] = [-1, -1, -1, -1, -1, -1, -1];
  readonly ends: number[] = [-1, -1, -1, -1, -1, -1, -1];
  /** True where the value's bytes are surely its normal form. */
  readonly normal: boolean[] = [false, false, false, false, false, false, false];

  set(field: number, start: number, end: number, normal: boolean): void {
    this.starts[field] = start;
    this.ends[field] = end;
    this.normal[field] = normal;
  }

  clear(): void {
    this.starts.fill(-1);
  }

  start(field: number): number {
    return this.starts[field] as number;
  }

  end(field: number): number {
    return this.ends[field] as number;
  }
}

/** What a value is, by its first byte; `absent` for a start of -1. */
export type ValueType = "absent" | "null" | "string" | "object" | "array" | "boolean" | "number";

export function typeAt(bytes: Uint8Array, start: number): ValueType {
  if (start < 0) return "absent";
  switch (bytes[start]) {
    case 0x22:
      return "string";
    case 0x6e:
      return "null";
    case 0x7b:
      return "object";
    case 0x5b:
      return "array";
    case 0x74:
    case 0x66:
      return "boolean";
    default:
      return "number";
  }
}

/**
 * An `index` as the decimal digits that it leaves with: an integer of any size keeps its digits. What else ZenML takes for an integer
 * is taken, too, as far as it says one exactly: `3.0`, `1e3`, `true`, `"7"`, `" 7 "`, `"1_000"`, `"7.0"`. Null when it is no integer.
 */
export function readIndex(bytes: Buffer, start: number, end: number): string | null {
  if (end - start > MAX_INDEX_DIGITS) return null;
  const type = typeAt(bytes, start);
  if (type === "string") return digitsOf(readText(bytes, start, end));
  const text = bytes.toString("latin1", start, end);
  if (type === "boolean") return text === "true" ? "1" : "0";
  if (type !== "number") return null;
  if (INTEGER.test(text)) return text === "-0" ? "0" : text;
  const value = Number(text);
  return Number.isSafeInteger(value) ? String(value + 0) : null;
}

function digitsOf(text: string): string | null {
  const match = LAX_INTEGER.exec(text);
  if (match === null) return null;
  const digits = (match[2] as string).replaceAll("_", "").replace(/^0+(?=\d)/, "");
  return match[1] === "-" && digits !== "0" ? `-${digits}` : digits;
}

/** Python, which reads what we store, refuses to make a number of more digits (https://docs.python.org/3/library/stdtypes.html#int-max-str-digits). */
const MAX_INDEX_DIGITS = 4300;
const INTEGER = /^-?(?:0|[1-9][0-9]*)$/;
const LAX_INTEGER = /^[ \t\n\r\f\v]*([+-]?)([0-9]+(?:_[0-9]+)*)(?:\.0*)?[ \t\n\r\f\v]*$/;
