import type { GatewayConfig } from "../config.ts";
import type { Log } from "../supervisor/worker-handle.ts";
import type { Authenticator } from "./authenticator.ts";
import { jwtTokens } from "./jwt.ts";
import { openToAll } from "./none.ts";
import { staticTokens } from "./static.ts";

/** The authenticator of `auth.mode`. Throws ConfigError when a file of it cannot be used. */
export function createAuthenticator(config: GatewayConfig["auth"], log: Log): Authenticator {
  switch (config.mode) {
    case "none":
      return openToAll();
    case "static":
      return staticTokens(config.static.tokensFile!, log);
    case "jwt":
      return jwtTokens(config.jwt, log);
  }
}
