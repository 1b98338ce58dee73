import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { MemoryLog } from "../../test/support/memory-log.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { ConfigError, RequestError } from "../errors.ts";
import type { Authenticator, Identity } from "./authenticator.ts";
import { type JwtConfig, jwtTokens } from "./jwt.ts";

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;

const folder = mkdtempSync(join(tmpdir(), "penstock-jwt-"));
const keyFile = join(folder, "key");
const log = new MemoryLog();
const RUN = "3f2b0c1e-0000-4000-8000-00000000000a";

let rsa: Keys;
let ec: Keys;
let issuer: Server;
let jwksUrl: string;
/** Null: the issuer fails. */
let published: object | null = { keys: [] };
let fetched = 0;
let open: Authenticator | null = null;

beforeAll(async () => {
  [rsa, ec] = await Promise.all([
    generateKeyPair("RS256", { extractable: true }),
    generateKeyPair("ES256", { extractable: true }),
  ]);
  issuer = createServer((_, response) => {
    fetched++;
    if (published === null) response.writeHead(500).end();
    else response.setHeader("content-type", "application/json").end(JSON.stringify(published));
  });
  await new Promise<void>((resolve) => issuer.listen(0, "127.0.0.1", resolve));
  jwksUrl = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/jwks`;
});
afterEach(() => open?.close());
afterAll(() => {
  issuer.close();
  issuer.closeAllConnections();
  rmSync(folder, { recursive: true });
});

function start(changes: Partial<JwtConfig>): Authenticator {
  open = jwtTokens(
    {
      jwksUrl: null,
      keyFile: null,
      issuer: "https://id.example.org",
      audience: "penstock",
      algorithms: [],
      runIdsClaim: null,
      readScope: "runs:read",
      publishScope: "runs:publish",
      leewaySeconds: 10,
      ...changes,
    },
    log,
  );
  return open;
}

function startWithFile(content: string, changes: Partial<JwtConfig> = {}): Authenticator {
  writeFileSync(keyFile, content);
  return start({ keyFile, ...changes });
}

interface TokenOptions {
  readonly claims?: JWTPayload;
  readonly expires?: number | string | null;
  readonly issuer?: string;
  readonly audience?: string;
  readonly alg?: string;
  readonly kid?: string;
}

function token(key: Keys["privateKey"] | Uint8Array, options: TokenOptions = {}): Promise<string> {
  const jwt = new SignJWT({ sub: "ada", scope: "runs:read runs:publish", ...options.claims })
    .setProtectedHeader({ alg: options.alg ?? "RS256", ...(options.kid === undefined ? {} : { kid: options.kid }) })
    .setIssuer(options.issuer ?? "https://id.example.org")
    .setAudience(options.audience ?? "penstock");
  if (options.expires !== null) jwt.setExpirationTime(options.expires ?? "1h");
  return jwt.sign(key);
}

async function ask(authenticator: Authenticator, jwt: string): Promise<Identity> {
  return authenticator.authenticate({ authorization: `Bearer ${jwt}`, cookie: null, origin: null });
}

async function refusal(authenticator: Authenticator, jwt: string): Promise<RequestError> {
  const error = await ask(authenticator, jwt).then(
    () => new Error("it was let in"),
    (reason: unknown) => reason as Error,
  );
  expect(error).toBeInstanceOf(RequestError);
  return error as RequestError;
}

describe("tokens checked by a key file", () => {
  it("let their holders do what their scopes say", async () => {
    const authenticator = startWithFile(await exportSPKI(rsa.publicKey));
    const identity = await ask(authenticator, await token(rsa.privateKey));
    expect(identity.id).toBe('jwt:["https://id.example.org","ada"]');
    expect([identity.can("read", RUN), identity.can("publish", RUN)]).toEqual([true, true]);
    const reader = await ask(authenticator, await token(rsa.privateKey, { claims: { scope: "email runs:read" } }));
    expect([reader.can("read", RUN), reader.can("publish", RUN)]).toEqual([true, false]);
    const list = await ask(authenticator, await token(rsa.privateKey, { claims: { scope: "", scp: ["runs:publish"] } }));
    expect([list.can("read", RUN), list.can("publish", RUN)]).toEqual([false, true]);
    const none = await ask(authenticator, await token(rsa.privateKey, { claims: { scope: "runs:reader" } }));
    expect([none.can("read", RUN), none.can("publish", RUN)]).toEqual([false, false]);
  });

  it("a JWK, a JWKS and a shared secret do as well", async () => {
    const jwk = await exportJWK(ec.publicKey);
    for (const content of [jwk, { keys: [jwk] }]) {
      const identity = await ask(startWithFile(JSON.stringify(content)), await token(ec.privateKey, { alg: "ES256" }));
      expect(identity.can("read", RUN)).toBe(true);
      open?.close();
    }
    const secret = randomBytes(24).toString("hex");
    const identity = await ask(startWithFile(`${secret}\n`), await token(Buffer.from(secret), { alg: "HS256" }));
    expect(identity.can("read", RUN)).toBe(true);
  });

  it("a claim confines a token to its runs, in any spelling", async () => {
    const authenticator = startWithFile(await exportSPKI(rsa.publicKey), { runIdsClaim: "run_ids" });
    const one = await ask(
      authenticator,
      await token(rsa.privateKey, { claims: { run_ids: RUN.toUpperCase().replaceAll("-", "") } }),
    );
    expect([one.can("read", RUN), one.can("read", "other")]).toEqual([true, false]);
    const some = await ask(authenticator, await token(rsa.privateKey, { claims: { run_ids: ["a", "b"] } }));
    expect([some.can("read", "a"), some.can("read", "b"), some.can("read", RUN)]).toEqual([true, true, false]);
    const without = await ask(authenticator, await token(rsa.privateKey));
    expect(without.can("read", RUN)).toBe(false);
  });

  it("tell when they end, however late that is", async () => {
    const authenticator = startWithFile(await exportSPKI(rsa.publicKey));
    const late = Math.floor(Date.now() / 1_000) + 2 ** 31;
    expect((await ask(authenticator, await token(rsa.privateKey, { expires: late }))).expiresAt).toBe(late * 1_000);
    expect((await ask(authenticator, await token(rsa.privateKey, { expires: null }))).expiresAt).toBeNull();
  });

  it("are refused when anything about them is wrong, and the answer repeats nothing of them", async () => {
    const pem = await exportSPKI(rsa.publicKey);
    const authenticator = startWithFile(pem);
    const now = Math.floor(Date.now() / 1_000);
    const good = await token(rsa.privateKey);
    const [head, payload, signature] = good.split(".") as [string, string, string];
    const none = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
    const wrong = {
      "expired a second ago, within the leeway": await token(rsa.privateKey, { expires: now - 1 }),
      "expired long ago": await token(rsa.privateKey, { expires: now - 100 }),
      "not begun": await token(rsa.privateKey, { claims: { nbf: now + 60 } }),
      "another issuer": await token(rsa.privateKey, { issuer: "https://evil.example.org" }),
      "another audience": await token(rsa.privateKey, { audience: "mail" }),
      "another key": await token(ec.privateKey, { alg: "ES256" }),
      "the public key as a secret": await token(Buffer.from(pem), { alg: "HS256" }),
      "no signature": `${head}.${payload}.`,
      "no algorithm": `${none}.${payload}.`,
      "another payload": `${head}.${Buffer.from('{"sub":"eve","scope":"runs:read"}').toString("base64url")}.${signature}`,
      "no JWT": "abc",
    };
    for (const [what, jwt] of Object.entries(wrong)) {
      const error = await refusal(authenticator, jwt);
      expect(error, what).toMatchObject({ status: 401, code: "PENSTOCK_UNAUTHORIZED" });
      expect(error.message, what).toMatch(/^The token (has expired|is not valid)\.$/);
    }
  });

  it("the log says at level debug why, in words that are not the token's", async () => {
    const authenticator = startWithFile(await exportSPKI(rsa.publicKey));
    const now = Math.floor(Date.now() / 1_000);
    const foreign = await token(ec.privateKey, { alg: "ES256" });
    const extended = Buffer.from(JSON.stringify({ alg: "RS256", crit: ["hush"], hush: 1 })).toString("base64url");
    const wrong: [string, object][] = [
      [await token(rsa.privateKey, { expires: now - 1 }), { reason: "ERR_JWT_EXPIRED", claim: "exp" }],
      [await token(rsa.privateKey, { expires: now - 100 }), { reason: "ERR_JWT_EXPIRED", claim: "exp" }],
      [await token(rsa.privateKey, { claims: { nbf: now + 60 } }), { reason: "ERR_JWT_CLAIM_VALIDATION_FAILED", claim: "nbf" }],
      [
        await token(rsa.privateKey, { issuer: "https://evil.example.org" }),
        { reason: "ERR_JWT_CLAIM_VALIDATION_FAILED", claim: "iss" },
      ],
      [await token(rsa.privateKey, { audience: "mail" }), { reason: "ERR_JWT_CLAIM_VALIDATION_FAILED", claim: "aud" }],
      [await token(Buffer.from("s".repeat(32)), { alg: "HS256" }), { reason: "ERR_JOSE_ALG_NOT_ALLOWED" }],
      [foreign, { reason: expect.stringMatching(/^the key does not fit/) }],
      [`${extended}.e30.e30`, { reason: "ERR_JOSE_NOT_SUPPORTED" }],
      ["abc", { reason: "ERR_JWS_INVALID" }],
    ];
    for (const [jwt, fields] of wrong) {
      log.entries.length = 0;
      await refusal(authenticator, jwt);
      expect(log.entries).toEqual([{ level: "debug", fields, message: "a token was refused" }]);
    }
  });

  it("only algorithms of the list count", async () => {
    const jwt = await token(ec.privateKey, { alg: "ES256" });
    const pem = await exportSPKI(ec.publicKey);
    expect((await refusal(startWithFile(pem, { algorithms: ["RS256", "ES384"] }), jwt)).status).toBe(401);
    open?.close();
    expect((await ask(startWithFile(pem, { algorithms: ["ES256"] }), jwt)).can("read", RUN)).toBe(true);
  });

  it("a new key in the file counts without a restart", async () => {
    const authenticator = startWithFile(await exportSPKI(rsa.publicKey));
    const jwt = await token(ec.privateKey, { alg: "ES256" });
    await refusal(authenticator, jwt);
    writeFileSync(keyFile, await exportSPKI(ec.publicKey));
    await waitFor("the new key counts", () =>
      ask(authenticator, jwt).then(
        () => true,
        () => false,
      ),
    );
  });
});

describe("a key file that cannot be used stops the start", () => {
  it.each([
    ["a short secret", "hunter2", /secret of 7 bytes; write at least 32/],
    ["a short secret as a JWK", '{"kty":"oct","k":"aHVudGVyMg"}', /secret of 7 bytes; write at least 32/],
    ["a private key", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", /private key; write the public one/],
    ["a broken PEM", "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", /neither a public key nor a certificate/],
    ["a private JWK", '{"kty":"RSA","d":"AQ"}', /private key; write the public one/],
    ["JSON of another kind", '{"port": 1}', /neither a JWK nor a JWKS/],
  ])("%s", (_, content, message) => {
    expect(() => startWithFile(content)).toThrow(ConfigError);
    expect(() => startWithFile(content)).toThrow(message);
  });

  it("algorithms that the key cannot have", () => {
    expect(() => startWithFile("s".repeat(32), { algorithms: ["RS256"] })).toThrow(
      /RS256, but the key is a shared secret; write HS256/,
    );
  });
});

describe("tokens checked by the issuer's keys", () => {
  it("are checked without asking the issuer each time, whoever made them", async () => {
    published = { keys: [{ ...(await exportJWK(rsa.publicKey)), kid: "one", alg: "RS256" }] };
    const authenticator = start({ jwksUrl });
    fetched = 0;
    for (const sub of ["a", "b", "c"]) {
      const identity = await ask(authenticator, await token(rsa.privateKey, { kid: "one", claims: { sub } }));
      expect(identity.can("read", RUN)).toBe(true);
    }
    expect(fetched).toBe(1);
    expect((await refusal(authenticator, await token(ec.privateKey, { alg: "ES256", kid: "two" }))).status).toBe(401);
    expect(fetched).toBe(1);
  });

  it("an issuer that is away is no fault of the token: 503, not 401", async () => {
    const authenticator = start({ jwksUrl: "http://127.0.0.1:1/jwks" });
    const error = await refusal(authenticator, await token(rsa.privateKey));
    expect(error).toMatchObject({ status: 503, code: "PENSTOCK_AUTH_UNAVAILABLE" });
    expect(log.entries.at(-1)).toMatchObject({ level: "error", message: expect.stringMatching(/^keys of the issuer cannot/) });
  });

  it("an issuer that is away is not asked at every token, nor told of in the log each time, and counts again when it is back", async () => {
    published = null;
    const authenticator = start({ jwksUrl });
    fetched = 0;
    log.entries.length = 0;
    const jwt = await token(rsa.privateKey, { kid: "one" });
    const refusals = await Promise.all(Array.from({ length: 20 }, () => refusal(authenticator, jwt)));
    for (let n = 0; n < 20; n++) refusals.push(await refusal(authenticator, jwt));
    expect(new Set(refusals.map(({ status }) => status))).toEqual(new Set([503]));
    expect(fetched).toBe(1);
    expect(log.entries).toHaveLength(1);
    published = { keys: [{ ...(await exportJWK(rsa.publicKey)), kid: "one", alg: "RS256" }] };
    await waitFor("the issuer is asked again", () =>
      ask(authenticator, jwt).then(
        () => true,
        () => false,
      ),
    );
    expect(log.entries.map(({ level }) => level)).toEqual(["error", "info"]);
  });
});
