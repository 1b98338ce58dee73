/** A setting is declared once, in `gateway/config.ts`; flags, variables, messages, the JSON schema and the reference are made from it. */
import * as z from "zod";
import type { Kind } from "./kinds.ts";

export interface Declaration<Value> {
  readonly kind: Kind<Value>;
  /** Left out: the setting must be given wherever its group is. */
  readonly default?: NoInfer<Value>;
  /** One or two sentences for the reference. */
  readonly about: string;
  /** Command-line flag, with its dashes. */
  readonly flag?: string;
  /** ZenML's variables of the same meaning, the stronger first. */
  readonly zenml?: readonly ZenmlVariable[];
  /** Its value never appears in a message. */
  readonly secret?: boolean;
}

export interface ZenmlVariable {
  readonly name: string;
  /** Turns ZenML's value into ours; throws an Error whose message says what to write. */
  readonly read?: (value: string) => string;
}

/** A declared setting in its place. */
export interface Setting {
  /** As a file writes it: `streaming.heartbeatSeconds`. */
  readonly name: string;
  readonly path: readonly string[];
  /** `PENSTOCK_STREAMING_HEARTBEAT_SECONDS`. */
  readonly variable: string;
  readonly zenml: readonly ZenmlVariable[];
  readonly flag: string | null;
  readonly expects: string;
  readonly about: string;
  readonly default: unknown;
  /** A value as a person writes it. */
  readonly written: (value: unknown) => string;
  readonly required: boolean;
  readonly secret: boolean;
  readonly boolean: boolean;
}

const declarations = new WeakMap<z.core.$ZodType, Declaration<unknown>>();

export function setting<const Value>(declaration: Declaration<Value>): z.ZodType<Value> {
  const given = declaration.kind.schema;
  const schema = declaration.default === undefined ? given : given.default(declaration.default as z.core.util.NoUndefined<Value>);
  declarations.set(schema, declaration);
  return schema as z.ZodType<Value>;
}

/** What was declared of a schema that `setting` made. */
export function settingOf(schema: z.core.$ZodType): Declaration<unknown> | undefined {
  return declarations.get(schema);
}

/** A group that may be left out: its settings' defaults hold then. Unknown keys are refused. */
export function group<Shape extends z.core.$ZodLooseShape>(shape: Shape): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>> {
  return z.strictObject(shape).prefault({} as never);
}

/** Every setting below `schema`, in the order of its declaration. */
export function listSettings(schema: z.core.$ZodType, path: readonly string[] = []): Setting[] {
  const declaration = declarations.get(schema);
  if (declaration !== undefined) return [place(declaration, path)];
  const inner = unwrap(schema);
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries(inner.shape as Record<string, z.core.$ZodType>).flatMap(([key, child]) =>
    listSettings(child, [...path, key]),
  );
}

function place(declaration: Declaration<unknown>, path: readonly string[]): Setting {
  return {
    name: path.join("."),
    path,
    variable: `PENSTOCK_${path.map((part) => part.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()).join("_")}`,
    zenml: declaration.zenml ?? [],
    flag: declaration.flag ?? null,
    expects: declaration.kind.expects,
    about: declaration.about,
    default: declaration.default,
    written: declaration.kind.written ?? String,
    required: declaration.default === undefined,
    secret: declaration.secret ?? false,
    boolean: declaration.kind.expects === "true or false",
  };
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  while (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault || inner instanceof z.ZodNullable) {
    inner = inner.def.innerType as z.core.$ZodType;
  }
  return inner;
}
