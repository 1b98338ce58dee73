/** What a setting's value may be. Each kind takes the value as a file has it and as text, as variables and flags bring it. */
import * as z from "zod";

export interface Kind<Value> {
  readonly schema: z.ZodType<Value>;
  /** Completes "write …". */
  readonly expects: string;
  /** JSON Schema of what a file may have, where it is more than the schema shows. */
  readonly json?: object;
  /** How pages and messages write a value that is no plain one. */
  readonly written?: (value: unknown) => string;
}

export function text(expects: string, shape: RegExp = /\S/): Kind<string> {
  return { schema: z.string().regex(shape), expects };
}

/** What to listen on. The brackets that a URL has around an IPv6 address go. */
export function host(): Kind<string> {
  const bare = (value: unknown): unknown => (typeof value === "string" ? value.replace(/^\[(.*)\]$/, "$1") : value);
  return { schema: z.preprocess(bare, z.string().regex(/^\S+$/)), expects: "an address or host name" };
}

/** An absent, null or empty value is null. */
export function nullable<Value>(kind: Kind<Value>): Kind<Value | null> {
  const emptyIsNull = (value: unknown): unknown => (value === "" ? null : value);
  return { schema: z.preprocess(emptyIsNull, kind.schema.nullable()), expects: kind.expects };
}

export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): Kind<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return { schema: z.preprocess(readNumber, z.int().min(min).max(max)), expects: `a whole number ${range}` };
}

/** Fractions are welcome. */
export function number(min: number, max: number): Kind<number> {
  return { schema: z.preprocess(readNumber, z.number().min(min).max(max)), expects: `a number from ${min} to ${max}` };
}

/** Above 0; fractions are welcome. */
export function positive(max: number): Kind<number> {
  return { schema: z.preprocess(readNumber, z.number().positive().max(max)), expects: `a number above 0, at most ${max}` };
}

export interface WorkerCounts {
  readonly min: number | "auto";
  readonly max: number | "auto";
}

/** How many workers: `auto`, a number, or both ends of a range, in a file as `{min, max}`, as text as `2-8`. */
export function workerCounts(most: number): Kind<WorkerCounts> {
  const end = z.union([z.literal("auto"), z.int().min(1).max(most)]);
  const range = z
    .strictObject({ min: end.default(1), max: end.default("auto") })
    .refine(({ min, max }) => min === "auto" || max === "auto" || min <= max);
  return {
    schema: z.preprocess(readWorkers, range) as unknown as z.ZodType<WorkerCounts>,
    expects: `auto, a whole number from 1 to ${most}, or a range such as 2-8, in a file {min: 2, max: 8}`,
    json: {
      oneOf: [
        { type: "integer", minimum: 1, maximum: most },
        { type: "string", pattern: "^(auto|(auto|\\d+)-(auto|\\d+))$" },
        { type: "object", properties: { min: jsonEnd(most), max: jsonEnd(most) }, additionalProperties: false },
      ],
    },
    written: (value) => writtenWorkers(value as WorkerCounts),
  };
}

/** Bytes, as a number or a quantity in Kubernetes' spelling (`4Mi`, `64k`, `1.5Gi`). */
export function bytes(min: number): Kind<number> {
  return {
    schema: z.preprocess(readQuantity, z.int().min(min)),
    expects: `a number of bytes of at least ${min}, or a quantity such as 512Ki, 4Mi or 1Gi`,
  };
}

export function boolean(): Kind<boolean> {
  return { schema: z.preprocess(readBoolean, z.boolean()), expects: "true or false" };
}

export function choice<const Values extends readonly [string, ...string[]]>(...values: Values): Kind<Values[number]> {
  const expects = values.length === 1 ? values[0] : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
  return { schema: z.enum(values) as unknown as z.ZodType<Values[number]>, expects };
}

/** A list; as text, its items stand between commas. */
export function list(expects: string, shape: RegExp = /\S/): Kind<string[]> {
  return { schema: z.preprocess(readList, z.array(z.string().regex(shape))), expects };
}

function readNumber(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)) return value;
  return Number(value);
}

/** `2`, `auto`, `2-8`. */
export function writtenWorkers({ min, max }: WorkerCounts): string {
  return min === max ? String(min) : `${min}-${max}`;
}

function jsonEnd(most: number): object {
  return { oneOf: [{ const: "auto" }, { type: "integer", minimum: 1, maximum: most }] };
}

function readWorkers(value: unknown): unknown {
  const single = readNumber(value);
  if (typeof single === "number" || single === "auto") return { min: single, max: single };
  const match = typeof value === "string" ? /^\s*(auto|\d+)\s*-\s*(auto|\d+)\s*$/.exec(value) : null;
  return match === null ? value : { min: readNumber(match[1]), max: readNumber(match[2]) };
}

const QUANTITY = /^\s*(\d+(?:\.\d+)?)\s*(Ki|Mi|Gi|Ti|k|M|G|T)?B?\s*$/;
const FACTORS: Record<string, number> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
};

function readQuantity(value: unknown): unknown {
  if (typeof value !== "string") return value;
  const match = QUANTITY.exec(value);
  return match === null ? value : Math.floor(Number(match[1]) * (match[2] === undefined ? 1 : FACTORS[match[2]]!));
}

const TRUE = new Set(["true", "t", "yes", "y", "on", "1"]);
const FALSE = new Set(["false", "f", "no", "n", "off", "0"]);

function readBoolean(value: unknown): unknown {
  const word = typeof value === "string" ? value.trim().toLowerCase() : "";
  return TRUE.has(word) ? true : FALSE.has(word) ? false : value;
}

function readList(value: unknown): unknown {
  if (typeof value !== "string") return value;
  return value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
