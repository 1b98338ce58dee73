import { timingSafeEqual } from "node:crypto";
import type { Log } from "../supervisor/worker-handle.ts";
import type { Action, Authenticator, Credentials, Identity } from "./authenticator.ts";
import { bearerToken, unauthorized } from "./bearer.ts";
import { digestOf, parseTokensFile, type TokenGrant } from "./tokens-file.ts";
import { WatchedFile } from "./watched-file.ts";

/** Tokens from a file. Only digests are kept and looked up, so the time of a look-up says nothing about a token. */
export function staticTokens(tokensFile: string, log: Log): Authenticator {
  const grants = new WatchedFile("auth.static.tokensFile", tokensFile, parseTokensFile, log);
  return {
    scheme: "OAUTH2_PASSWORD_BEARER",
    authenticate(credentials: Credentials): Identity {
      const digest = digestOf(bearerToken(credentials));
      const grant = grants.value.get(digest.toString("hex"));
      if (grant === undefined || !timingSafeEqual(grant.digest, digest)) throw unauthorized("The token is not known.");
      if (grant.expiresAt !== null && grant.expiresAt <= Date.now()) throw unauthorized("The token has expired.");
      return identityOf(grant);
    },
    close: () => grants.close(),
  };
}

function identityOf(grant: TokenGrant): Identity {
  return {
    id: `static:${grant.id}`,
    expiresAt: grant.expiresAt,
    can: (action: Action, runId: string) => grant.rights.has(action) && grant.covers(runId),
  };
}
