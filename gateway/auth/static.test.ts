import { createHash } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { MemoryLog } from "../../test/support/memory-log.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { ConfigError, RequestError } from "../errors.ts";
import type { Authenticator, Identity } from "./authenticator.ts";
import { staticTokens } from "./static.ts";

const folder = mkdtempSync(join(tmpdir(), "penstock-tokens-"));
const path = join(folder, "tokens.yaml");
const log = new MemoryLog();
let open: Authenticator | null = null;
afterEach(() => open?.close());
afterAll(() => rmSync(folder, { recursive: true }));

const READER = "reader-token-0123456789";
const WRITER = "writer-token-0123456789";
const UUID = "3f2b0c1e-0000-4000-8000-00000000000a";

function start(yaml: string): Authenticator {
  writeFileSync(path, yaml);
  open = staticTokens(path, log);
  return open;
}

function ask(authenticator: Authenticator, authorization: string | null): Identity {
  return authenticator.authenticate({ authorization, cookie: null, origin: null }) as Identity;
}

function refusal(authenticator: Authenticator, authorization: string | null): RequestError {
  try {
    ask(authenticator, authorization);
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ status: 401, code: "PENSTOCK_UNAUTHORIZED" });
    return error as RequestError;
  }
  throw new Error("it was let in");
}

const sha256 = (token: string) => createHash("sha256").update(token).digest("hex");

describe("tokens of a file", () => {
  it("let their holders do what the file says, on the runs that it says", () => {
    const authenticator = start(`
tokens:
  - {id: reader, sha256: ${sha256(READER)}}
  - {id: writer, token: ${WRITER}, rights: [read, publish], runs: ["nightly-*", "${UUID.toUpperCase()}"]}
`);
    const reader = ask(authenticator, `Bearer ${READER}`);
    expect(reader).toMatchObject({ id: "static:reader", expiresAt: null });
    expect([reader.can("read", UUID), reader.can("read", "any"), reader.can("publish", UUID)]).toEqual([true, true, false]);
    const writer = ask(authenticator, `bearer  ${WRITER}`);
    expect([writer.can("publish", UUID), writer.can("publish", "nightly-7"), writer.can("read", "weekly-7")]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("a dot in a pattern is a dot", () => {
    const identity = ask(start(`tokens: [{id: a, token: ${READER}, runs: ["v1.*"]}]`), `Bearer ${READER}`);
    expect([identity.can("read", "v1.x"), identity.can("read", "v12x")]).toEqual([true, false]);
  });

  it.each([
    ["no header", null],
    ["another scheme", `Basic ${READER}`],
    ["no token", "Bearer "],
    ["two tokens", `Bearer ${READER} ${READER}`],
    ["an unknown token", "Bearer nobody-knows-this-one"],
    ["a digest in place of its token", `Bearer ${sha256(READER)}`],
    ["a token out of characters that none has", "Bearer ü"],
  ])("%s is answered 401, and the answer repeats nothing of it", (_, authorization) => {
    const error = refusal(start(`tokens: [{id: reader, sha256: ${sha256(READER)}}]`), authorization);
    expect(error.message).not.toContain(READER);
  });

  it("end when they expire, and streams are told when", () => {
    const authenticator = start(`
tokens:
  - {id: old, token: ${READER}, expires: "2020-01-01T00:00:00Z"}
  - {id: new, token: ${WRITER}, expires: "2100-01-01T00:00:00+01:00"}
`);
    expect(refusal(authenticator, `Bearer ${READER}`).message).toMatch(/expired/);
    expect(ask(authenticator, `Bearer ${WRITER}`).expiresAt).toBe(Date.UTC(2099, 11, 31, 23));
  });

  it("are read again when the file is replaced, and kept when the new one is wrong", async () => {
    const authenticator = start(`tokens: [{id: reader, token: ${READER}}]`);
    // As Kubernetes changes a Secret: another file under the same name.
    writeFileSync(`${path}.new`, `tokens: [{id: writer, token: ${WRITER}}]`);
    renameSync(`${path}.new`, path);
    await waitFor("the new token counts", () => {
      try {
        return ask(authenticator, `Bearer ${WRITER}`);
      } catch {
        return false;
      }
    });
    refusal(authenticator, `Bearer ${READER}`);

    writeFileSync(path, `tokens: [{id: writer, token: ${WRITER}, rihgts: [read]}]`);
    await waitFor("the wrong file is told", () => log.entries.some(({ level }) => level === "error"));
    expect(ask(authenticator, `Bearer ${WRITER}`).id).toBe("static:writer");
    expect(JSON.stringify(log.entries)).not.toContain(WRITER);
  });
});

describe("a tokens file that cannot be used stops the start, without a word of its secrets", () => {
  it.each([
    ["not YAML", `tokens: [{token: ${READER}`, /neither YAML nor JSON, as line 1 shows; correct it there/],
    ["not YAML further down", `tokens:\n  - id: a\n    token: ${READER}\n   rights: [read]\n`, /nor JSON, as line 4 shows/],
    ["nothing", "", /line 1, at its top: write tokens: and their list/],
    ["no list", "tokens: all", /line 1, at tokens: write a list of tokens/],
    [
      "a token where its fields belong",
      `tokens:\n  - ${READER}`,
      /line 2, at tokens\.0: write the fields of a token: id, sha256/,
    ],
    ["an unknown field", `tokens: [{id: a, tokn: ${READER}}]`, /at tokens\.0: tokn is not known here; did you mean token\?$/],
    [
      "a token as the name of a field",
      `tokens:\n  - id: a\n    ${READER}: read\n`,
      /line 3, at tokens\.0: a field there is not known here; write id, sha256, token, rights, runs, expires\.$/,
    ],
    ["no name", `tokens: [{token: ${READER}}]`, /at tokens\.0\.id: write/],
    [
      "a fault in one of several",
      `tokens:\n  - id: a\n    token: ${READER}\n  - id: b\n    token: abc`,
      /line 5, at tokens\.1\.token:/,
    ],
    ["a digest that YAML takes for a number", `tokens: [{id: a, sha256: ${"1".repeat(64)}}]`, /sha256: write .* in quotes/],
    ["neither token nor digest", "tokens: [{id: a}]", /line 1, at tokens\.0\.id: a has neither sha256 nor token; give it one/],
    ["a short token", "tokens: [{id: a, token: abc}]", /at tokens\.0\.token: write a token of at least 16/],
    ["a token that no header can carry", `tokens: [{id: a, token: "${READER} ${READER}"}]`, /at tokens\.0\.token: write a token/],
    ["a digest that is none", `tokens: [{id: a, sha256: ${READER}}]`, /at tokens\.0\.sha256: write the SHA-256/],
    [
      "both token and digest",
      `tokens: [{id: a, token: ${READER}, sha256: ${sha256(READER)}}]`,
      /at tokens\.0\.token: a has both sha256 and token; keep one/,
    ],
    ["an unknown right", `tokens: [{id: a, token: ${READER}, rights: [write]}]`, /rights\.0: write read or publish/],
    ["rights that are no list", `tokens: [{id: a, token: ${READER}, rights: read}]`, /rights: write a list: \[read\]/],
    ["runs that are no list", `tokens: [{id: a, token: ${READER}, runs: nightly}]`, /runs: write a list of run ids/],
    [
      "one token for two",
      `tokens:\n  - {id: a, token: ${READER}}\n  - {id: b, sha256: ${sha256(READER)}}`,
      /line 3, at tokens\.1\.sha256: b has the same token as tokens\.0; give each its own/,
    ],
    [
      "one name for two",
      `tokens:\n  - {id: a, token: ${READER}}\n  - {id: a, token: ${WRITER}}`,
      /line 3, at tokens\.1\.id: tokens\.0 is called a, too; choose another name/,
    ],
    ["a time that is none", `tokens: [{id: a, token: ${READER}, expires: tomorrow}]`, /expires: write a time/],
  ])("%s", (_, yaml, message) => {
    expect(() => start(yaml)).toThrow(ConfigError);
    expect(() => start(yaml)).toThrow(message);
    expect(() => start(yaml)).not.toThrow(new RegExp(READER));
  });

  it("no such file", () => {
    const message = /^auth\.static\.tokensFile: the file \/.*none\.yaml cannot be read \(ENOENT\); correct its path or rights\.$/;
    expect(() => staticTokens(join(folder, "none.yaml"), log)).toThrow(message);
  });
});
