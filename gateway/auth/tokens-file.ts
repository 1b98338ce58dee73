/** The file of `auth.mode: static` (docs/auth.md): who holds which token, and what it lets do. */
import { createHash } from "node:crypto";
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import * as z from "zod";
import { nearest } from "../config/nearest.ts";
import { ConfigError } from "../errors.ts";
import type { Action } from "./authenticator.ts";
import { runMatcher } from "./run-pattern.ts";

export interface TokenGrant {
  /** Name of the holder. */
  readonly id: string;
  /** SHA-256 of the token. */
  readonly digest: Buffer;
  readonly rights: ReadonlySet<Action>;
  /** Wall-clock milliseconds, or null. */
  readonly expiresAt: number | null;
  covers(runId: string): boolean;
}

const FIELDS = ["id", "sha256", "token", "rights", "runs", "expires"];
const fieldsOf = { error: `write the fields of a token: ${FIELDS.join(", ")}` };
const rights = { error: "write a list: [read], [publish], or [read, publish]" };
const runs = { error: 'write a list of run ids, in which * stands for any characters: ["nightly-*"]' };

const entry = z.strictObject(
  {
    id: z
      .string({ error: "write the holder's name" })
      .regex(/^[\x21-\x7e]{1,128}$/, { error: "write a name without white space" }),
    sha256: z
      .string({ error: "write the SHA-256 of the token in quotes, as 64 hexadecimal digits" })
      .regex(/^[0-9a-f]{64}$/i, { error: "write the SHA-256 of the token as 64 hexadecimal digits" })
      .optional(),
    token: z
      .string({ error: "write the token in quotes" })
      .regex(/^(?=.{16})[A-Za-z0-9._~+/-]+=*$/, {
        error: "write a token of at least 16 characters, out of letters, digits and ._~+/-",
      })
      .optional(),
    rights: z
      .array(z.enum(["read", "publish"], { error: "write read or publish" }), rights)
      .min(1, rights)
      .default(["read"]),
    runs: z.array(z.string(runs).min(1, runs), runs).default(["*"]),
    expires: z.iso.datetime({ offset: true, error: "write a time such as 2031-01-31T00:00:00Z" }).nullable().default(null),
  },
  fieldsOf,
);
const file = z.strictObject(
  { tokens: z.array(entry, { error: "write a list of tokens" }) },
  { error: "write tokens: and their list" },
);

/** Grants by the hex digest of their token. Throws ConfigError, which names line and entry, and never quotes a token. */
export function parseTokensFile(text: string): ReadonlyMap<string, TokenGrant> {
  const { content, lineOf } = readYaml(text);
  const result = file.safeParse(content);
  if (!result.success) throw refused(result.error.issues[0]!, lineOf);
  const grants = new Map<string, TokenGrant>();
  const entryOfName = new Map<string, number>();
  const entryOfDigest = new Map<string, number>();
  for (const [index, { id, sha256, token, rights, runs, expires }] of result.data.tokens.entries()) {
    const at = (field: string, what: string): ConfigError => wrong(["tokens", index, field], lineOf, what);
    if (sha256 === undefined && token === undefined) throw at("id", `${id} has neither sha256 nor token; give it one`);
    if (sha256 !== undefined && token !== undefined) throw at("token", `${id} has both sha256 and token; keep one`);
    const digest = token === undefined ? Buffer.from(sha256!, "hex") : digestOf(token);
    const key = digest.toString("hex");
    const [sameName, sameToken] = [entryOfName.get(id), entryOfDigest.get(key)];
    if (sameName !== undefined) throw at("id", `tokens.${sameName} is called ${id}, too; choose another name for one of them`);
    const field = token === undefined ? "sha256" : "token";
    if (sameToken !== undefined) throw at(field, `${id} has the same token as tokens.${sameToken}; give each its own`);
    entryOfName.set(id, index);
    entryOfDigest.set(key, index);
    const expiresAt = expires === null ? null : Date.parse(expires);
    grants.set(key, { id, digest, rights: new Set(rights), expiresAt, covers: runMatcher(runs) });
  }
  return grants;
}

export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

type Path = readonly PropertyKey[];
/** The line that a field stands in, or what would hold it. */
type LineOf = (path: Path) => number;

function refused(issue: z.core.$ZodIssue, lineOf: LineOf): ConfigError {
  if (issue.code !== "unrecognized_keys") return wrong(issue.path, lineOf, issue.message);
  const name = issue.keys[0]!;
  const known = issue.path.length === 0 ? ["tokens"] : FIELDS;
  // A name that is nothing like one of ours may be a token at the wrong place.
  const meant = nearest(name, known);
  const what = meant === null ? "a field there is" : `${name} is`;
  const way = meant === null ? `write ${known.join(", ")}` : `did you mean ${meant}?`;
  const line = lineOf([...issue.path, name]);
  return wrong(issue.path, () => line, `${what} not known here; ${way}`);
}

function wrong(path: Path, lineOf: LineOf, what: string): ConfigError {
  const place = path.map(String).join(".") || "its top";
  const end = what.endsWith("?") ? "" : ".";
  return new ConfigError(`auth.static.tokensFile is not right in line ${lineOf(path)}, at ${place}: ${what}${end}`);
}

function readYaml(text: string): { content: unknown; lineOf: LineOf } {
  const lineCounter = new LineCounter();
  const lineAt = (offset: number): number => Math.max(lineCounter.linePos(offset).line, 1);
  const broken = (offset: number): ConfigError =>
    // The parser's own message may quote a token.
    new ConfigError(
      `auth.static.tokensFile is neither YAML nor JSON, as line ${lineAt(offset)} shows; correct it there (docs/auth.md has an example).`,
    );
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const error = document.errors[0];
  if (error !== undefined) throw broken(error.pos[0]);
  try {
    return { content: document.toJS(), lineOf: (path) => lineAt(offsetOf(document, path)) };
  } catch {
    throw broken(0);
  }
}

function offsetOf(document: Document, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const parent = document.getIn(path.slice(0, length - 1), true);
    const name = path[length - 1];
    const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && key.value === name) : undefined;
    if (isScalar(pair?.key) && pair.key.range) return pair.key.range[0];
    const item = isSeq(parent) ? parent.items[Number(name)] : undefined;
    if (isNode(item) && item.range) return item.range[0];
  }
  return document.contents?.range?.[0] ?? 0;
}
