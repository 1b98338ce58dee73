/** Who may read and publish: the seam between the routes (`gateway/http`) and the ways of `auth.mode`. */

/** What a request brings along; header values as they came, null where there was none. */
export interface Credentials {
  readonly authorization: string | null;
  readonly cookie: string | null;
  readonly origin: string | null;
}

/** READ lets a caller follow runs, UPDATE lets it publish and end them. */
export type Action = "read" | "publish";

/** A caller that proved who it is. */
export interface Identity {
  /** Stable for one caller, so that it can scope idempotency keys. Never a token or a part of one. */
  readonly id: string;
  /** When the right ends, in wall-clock milliseconds; null when it does not. */
  readonly expiresAt: number | null;
  /** `runId` in its canonical spelling. */
  can(action: Action, runId: string): boolean;
}

export interface Authenticator {
  /** `auth_scheme` of `GET /api/v1/info`, in ZenML's words. */
  readonly scheme: string;
  /** Throws (or rejects with) RequestError 401 `PENSTOCK_UNAUTHORIZED`; nothing else reaches a client. */
  authenticate(credentials: Credentials): Identity | Promise<Identity>;
  /** Stops watching files and fetching keys. */
  close(): void;
}
