/** The keys against which a JWT is checked, and the algorithms that fit them. */
import { createPublicKey, createSecretKey, type KeyObject } from "node:crypto";
import { createLocalJWKSet, createRemoteJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { ConfigError, RequestError } from "../errors.ts";
import type { Log } from "../supervisor/worker-handle.ts";
import { WatchedFile } from "./watched-file.ts";

export interface KeySource {
  /** Symmetric keys and public keys never share algorithms: a public key must not pass for a secret. */
  readonly symmetric: boolean;
  readonly find: KeyFinder;
  close(): void;
}

/** What jose asks for a key; a KeyObject will do for it. */
export type KeyFinder = (...from: Parameters<JWTVerifyGetKey>) => Promise<Awaited<ReturnType<JWTVerifyGetKey>> | KeyObject>;

const REFRESH_MS = 5 * 60_000;
const MAX_AGE_MS = 60 * 60_000;
/** Between two fetches: what callers send, with tokens or without, must not become a storm of fetches. */
const RETRY_MS = 2_000;
const UNKNOWN_KEY_RETRY_MS = 30_000;

/** Keys of an issuer: fetched at first need, again in the background, and used for an hour when the issuer is away. */
export function remoteKeys(url: string, log: Log): KeySource {
  const issuer = new Issuer(url, log);
  return { symmetric: false, find: (header, token) => issuer.find(header, token), close: () => {} };
}

class Issuer {
  readonly #url: string;
  readonly #log: Log;
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;
  #triedAt = Number.NEGATIVE_INFINITY;
  #trying: Promise<void> | null = null;
  #isAway = false;

  constructor(url: string, log: Log) {
    this.#url = url;
    this.#log = log;
    // When to fetch is decided here: by itself jose would, while the issuer is away, at every token with an unknown key.
    this.#keys = createRemoteJWKSet(new URL(url), { cacheMaxAge: MAX_AGE_MS, cooldownDuration: Number.POSITIVE_INFINITY });
  }

  async find(...from: Parameters<KeyFinder>): Promise<Awaited<ReturnType<JWTVerifyGetKey>>> {
    const keys = this.#keys;
    if (!keys.fresh) await this.#fetched(RETRY_MS);
    else if (this.#isDue(REFRESH_MS)) this.#fetched(REFRESH_MS).catch(() => {});
    try {
      return await keys(...from);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      // It may be one that the issuer has just begun to use.
      await this.#fetched(UNKNOWN_KEY_RETRY_MS);
      return keys(...from);
    }
  }

  /** Fetches, unless that was tried less than `pauseMs` ago; one fetch for all who wait. Rejects with RequestError 503 when the last one failed. */
  async #fetched(pauseMs: number): Promise<void> {
    if (this.#trying === null && this.#isDue(pauseMs)) {
      this.#trying = this.#fetch().finally(() => {
        this.#trying = null;
      });
    }
    await this.#trying;
    if (this.#isAway) throw new RequestError("PENSTOCK_AUTH_UNAVAILABLE", 503, "Tokens cannot be checked at present.");
  }

  #isDue(pauseMs: number): boolean {
    return performance.now() - this.#triedAt >= pauseMs;
  }

  async #fetch(): Promise<void> {
    this.#triedAt = performance.now();
    try {
      await this.#keys.reload();
      if (this.#isAway) this.#log.info({ url: this.#url }, "keys of the issuer can be fetched again");
      this.#isAway = false;
    } catch (error) {
      const fields = { url: this.#url, error: (error as Error).message };
      // Once an outage, not at every try.
      if (!this.#isAway)
        this.#log.error(fields, "keys of the issuer cannot be fetched; the last ones, if any, count for an hour");
      this.#isAway = true;
    }
  }
}

/** Keys of a file: PEM, JWK, JWKS, or a shared secret. Throws ConfigError. */
export function fileKeys(path: string, log: Log): KeySource {
  let symmetric: boolean | null = null;
  const parse = (text: string): Keys => {
    const keys = parseKeys(text);
    symmetric ??= keys.symmetric;
    // Which algorithms count follows from the kind of the key, and is settled at the start.
    if (keys.symmetric !== symmetric)
      throw new ConfigError("auth.jwt.keyFile now holds another kind of key; restart the gateway.");
    return keys;
  };
  const file = new WatchedFile("auth.jwt.keyFile", path, parse, log);
  return { symmetric: file.value.symmetric, find: (header, token) => file.value.find(header, token), close: () => file.close() };
}

type Keys = Pick<KeySource, "symmetric" | "find">;

function parseKeys(text: string): Keys {
  const trimmed = text.trim();
  if (trimmed.includes("PRIVATE KEY-----")) throw new ConfigError("auth.jwt.keyFile holds a private key; write the public one.");
  if (trimmed.startsWith("-----BEGIN")) return one(parsePem(trimmed), false);
  if (trimmed.startsWith("{")) return parseJwks(trimmed);
  return shared(Buffer.from(text.replace(/\r?\n$/, ""), "utf8"));
}

function shared(secret: Buffer): Keys {
  if (secret.length < 32) throw new ConfigError(`auth.jwt.keyFile holds a secret of ${secret.length} bytes; write at least 32.`);
  return one(createSecretKey(secret), true);
}

function one(key: KeyObject, symmetric: boolean): Keys {
  return { symmetric, find: async () => key };
}

function parsePem(text: string): KeyObject {
  try {
    return createPublicKey(text);
  } catch {
    throw new ConfigError("auth.jwt.keyFile begins like a PEM file, but holds neither a public key nor a certificate.");
  }
}

function parseJwks(text: string): Keys {
  let keys: { kty?: unknown; d?: unknown; k?: unknown }[];
  try {
    const parsed = JSON.parse(text) as { keys?: unknown };
    keys = (Array.isArray(parsed.keys) ? parsed.keys : [parsed]) as typeof keys;
    if (keys.some((key) => typeof key !== "object" || key === null || typeof key.kty !== "string")) throw new Error("no kty");
  } catch {
    throw new ConfigError("auth.jwt.keyFile begins like JSON, but is neither a JWK nor a JWKS.");
  }
  if (keys.some(({ d }) => d !== undefined)) throw new ConfigError("auth.jwt.keyFile holds a private key; write the public one.");
  const secret = keys.length === 1 && keys[0]!.kty === "oct" ? keys[0]!.k : undefined;
  if (typeof secret === "string") return shared(Buffer.from(secret, "base64url"));
  return { symmetric: false, find: createLocalJWKSet({ keys } as JSONWebKeySet) };
}
