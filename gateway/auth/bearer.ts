import { RequestError } from "../errors.ts";
import type { Credentials } from "./authenticator.ts";

/** The token of `Authorization: Bearer …` (RFC 6750 2.1). Throws RequestError 401. */
export function bearerToken(credentials: Credentials): string {
  if (credentials.authorization === null) throw unauthorized("Not authenticated: send Authorization: Bearer and a token.");
  const match = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(credentials.authorization);
  if (match === null) throw unauthorized("The Authorization header has another shape than Bearer and a token.");
  return match[1]!;
}

/** The message goes to the client: it may not hold anything of the token. */
export function unauthorized(message: string): RequestError {
  return new RequestError("PENSTOCK_UNAUTHORIZED", 401, message);
}
