/** The file of `auth.mode: static` (docs/auth.md): who holds which token, and what it lets do. */
import { createHash } from "node:crypto";
import { parse } from "yaml";
import * as z from "zod";
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

const entry = z.strictObject({
  id: z.string({ error: "write the holder's name" }).regex(/^[\x21-\x7e]{1,128}$/, { error: "write a name without white space" }),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, { error: "write the SHA-256 of the token as 64 hexadecimal digits" })
    .optional(),
  token: z
    .string()
    .regex(/^(?=.{16})[A-Za-z0-9._~+/-]+=*$/, {
      error: "write a token of at least 16 characters, out of letters, digits and ._~+/-",
    })
    .optional(),
  rights: z
    .array(z.enum(["read", "publish"], { error: "write read or publish" }))
    .min(1, { error: "write read, publish, or both" })
    .default(["read"]),
  runs: z.array(z.string().min(1)).default(["*"]),
  expires: z.iso.datetime({ offset: true, error: "write a time such as 2031-01-31T00:00:00Z" }).nullable().default(null),
});
const file = z.strictObject({ tokens: z.array(entry) });

/** Grants by the hex digest of their token. Throws ConfigError, which never quotes the file. */
export function parseTokensFile(text: string): ReadonlyMap<string, TokenGrant> {
  const result = file.safeParse(parseYaml(text));
  if (!result.success) {
    const issue = result.error.issues[0]!;
    const what = issue.code === "unrecognized_keys" ? `${issue.keys.join(", ")} is not known here` : issue.message;
    throw new ConfigError(`The tokens file is not right at ${issue.path.map(String).join(".") || "its top"}: ${what}.`);
  }
  const grants = new Map<string, TokenGrant>();
  const names = new Set<string>();
  for (const { id, sha256, token, rights, runs, expires } of result.data.tokens) {
    if ((sha256 === undefined) === (token === undefined)) {
      throw new ConfigError(`The tokens file gives ${id} not exactly one of sha256 and token; keep one.`);
    }
    const digest = token === undefined ? Buffer.from(sha256!, "hex") : digestOf(token);
    const key = digest.toString("hex");
    if (grants.has(key) || names.has(id))
      throw new ConfigError(`The tokens file has the id or the token of ${id} twice; remove one.`);
    names.add(id);
    const expiresAt = expires === null ? null : Date.parse(expires);
    grants.set(key, { id, digest, rights: new Set(rights), expiresAt, covers: runMatcher(runs) });
  }
  return grants;
}

export function digestOf(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

function parseYaml(text: string): unknown {
  try {
    return parse(text, { prettyErrors: false });
  } catch {
    // The parser's message may quote a token.
    throw new ConfigError("The tokens file is neither YAML nor JSON.");
  }
}
