/** The keys against which a JWT is checked, and the algorithms that fit them. */
import { createPublicKey, createSecretKey, type KeyObject } from "node:crypto";
import { createLocalJWKSet, createRemoteJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
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

/** Keys of an issuer: fetched at first need, again in the background, and used for an hour when the issuer is away. */
export function remoteKeys(url: string, log: Log): KeySource {
  const keys = createRemoteJWKSet(new URL(url), { cacheMaxAge: MAX_AGE_MS });
  let tried = Number.NEGATIVE_INFINITY;
  const reload = async (): Promise<void> => {
    tried = performance.now();
    await keys.reload();
  };
  const find: KeyFinder = async (header, token) => {
    if (keys.fresh && performance.now() - tried > REFRESH_MS) {
      reload().catch((error: Error) =>
        log.warn({ url, error: error.message }, "keys of the issuer cannot be fetched; the last ones stay"),
      );
    }
    try {
      if (!keys.fresh) await reload();
    } catch (error) {
      log.error({ url, error: (error as Error).message }, "keys of the issuer cannot be fetched");
      throw new RequestError("PENSTOCK_AUTH_UNAVAILABLE", 503, "Tokens cannot be checked at present.");
    }
    return keys(header, token);
  };
  return { symmetric: false, find, close: () => {} };
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
  const file = new WatchedFile(path, parse, log);
  return { symmetric: file.value.symmetric, find: (header, token) => file.value.find(header, token), close: () => file.close() };
}

type Keys = Pick<KeySource, "symmetric" | "find">;

function parseKeys(text: string): Keys {
  const trimmed = text.trim();
  if (trimmed.includes("PRIVATE KEY-----")) throw new ConfigError("auth.jwt.keyFile holds a private key; write the public one.");
  if (trimmed.startsWith("-----BEGIN")) return one(parsePem(trimmed), false);
  if (trimmed.startsWith("{")) return parseJwks(trimmed);
  const secret = Buffer.from(text.replace(/\r?\n$/, ""), "utf8");
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
  if (typeof secret === "string") return one(createSecretKey(Buffer.from(secret, "base64url")), true);
  return { symmetric: false, find: createLocalJWKSet({ keys } as JSONWebKeySet) };
}
