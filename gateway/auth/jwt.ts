import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { GatewayConfig } from "../config.ts";
import { ConfigError, PenstockError } from "../errors.ts";
import type { Log } from "../supervisor/worker-handle.ts";
import type { Action, Authenticator, Credentials, Identity } from "./authenticator.ts";
import { bearerToken, unauthorized } from "./bearer.ts";
import { fileKeys, type KeySource, remoteKeys } from "./key-source.ts";
import { runMatcher } from "./run-pattern.ts";

export type JwtConfig = GatewayConfig["auth"]["jwt"];

const PUBLIC_KEY_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
const SHARED_SECRET_ALGORITHMS = ["HS256", "HS384", "HS512"];

/** Signed tokens (RFC 7519). Throws ConfigError when the key or the algorithms cannot be used. */
export function jwtTokens(config: JwtConfig, log: Log): Authenticator {
  const keys = config.jwksUrl === null ? fileKeys(config.keyFile!, log) : remoteKeys(config.jwksUrl, log);
  const options = {
    algorithms: algorithmsFor(keys, config.algorithms),
    clockTolerance: config.leewaySeconds,
    ...(config.issuer === null ? {} : { issuer: config.issuer }),
    ...(config.audience === null ? {} : { audience: config.audience }),
  };
  return {
    scheme: "OAUTH2_PASSWORD_BEARER",
    async authenticate(credentials: Credentials): Promise<Identity> {
      const token = bearerToken(credentials);
      let payload: JWTPayload;
      try {
        // jose takes KeyObjects too; its type for a finder does not say so.
        payload = (await jwtVerify(token, keys.find as JWTVerifyGetKey, options)).payload;
      } catch (error) {
        if (error instanceof PenstockError) throw error;
        log.debug(whyRefused(error), "a token was refused");
        throw unauthorized(error instanceof errors.JWTExpired ? "The token has expired." : "The token is not valid.");
      }
      const identity = identityOf(payload, config);
      // Exact, without leeway: a stream ends at `exp`, and its reader must not be let in again right after.
      if (identity.expiresAt !== null && identity.expiresAt <= Date.now()) {
        log.debug({ reason: errors.JWTExpired.code, claim: "exp" }, "a token was refused");
        throw unauthorized("The token has expired.");
      }
      return identity;
    },
    close: () => keys.close(),
  };
}

function algorithmsFor(keys: KeySource, wanted: readonly string[]): string[] {
  const fitting = keys.symmetric ? SHARED_SECRET_ALGORITHMS : PUBLIC_KEY_ALGORITHMS;
  const others = wanted.filter((algorithm) => !fitting.includes(algorithm));
  if (others.length > 0) {
    const kind = keys.symmetric ? "a shared secret" : "public keys";
    throw new ConfigError(
      `auth.jwt.algorithms has ${others.join(", ")}, but the key is ${kind}; write ${fitting.join(", ")} or some of them.`,
    );
  }
  return wanted.length === 0 ? fitting : [...wanted];
}

/** In words of the library's own, and names of claims: its messages may quote what stands in a token. */
function whyRefused(error: unknown): { readonly reason: string; readonly claim?: string } {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    return { reason: error.code, claim: error.claim };
  }
  if (error instanceof errors.JOSEError) return { reason: error.code };
  // The signature is checked by Node.js, which throws when the key is of another kind than the token's algorithm asks for.
  return { reason: `the key does not fit (${(error as Error).name})` };
}

function identityOf(payload: JWTPayload, config: JwtConfig): Identity {
  const scopes = new Set([...words(payload["scope"]), ...words(payload["scp"])]);
  const holder = [payload.sub, payload["client_id"], payload["azp"]].find((claim) => typeof claim === "string") ?? "";
  const covers = config.runIdsClaim === null ? () => true : runMatcher(words(payload[config.runIdsClaim]));
  const scopeOf = { read: config.readScope, publish: config.publishScope };
  return {
    id: `jwt:${JSON.stringify([payload.iss ?? "", holder])}`,
    expiresAt: payload.exp === undefined ? null : payload.exp * 1_000,
    can: (action: Action, runId: string) => scopes.has(scopeOf[action]) && covers(runId),
  };
}

/** A claim that is a list, or a text of words (RFC 8693 4.2). */
function words(claim: unknown): string[] {
  if (typeof claim === "string") return claim.split(/\s+/).filter((word) => word !== "");
  return Array.isArray(claim) ? claim.filter((word) => typeof word === "string") : [];
}
