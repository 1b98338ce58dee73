/** Where a subscriber's bytes go: one HTTP response in the gateway (`gateway/http/sse-sink.ts`), an array in tests. */
export interface Sink {
  /**
   * Sends whole frames, all of them. False means that the socket is full: nothing more may be written until the owner calls
   * `Subscriber.drained`. May not be called after `end`.
   */
  write(frames: Uint8Array): boolean;
  /**
   * Ends the body cleanly, behind a last frame or none; what a full socket still holds goes first. Cut where the client takes nothing of
   * that for `stallMs`, `streaming.stallSeconds` unless given.
   */
  end(last: Uint8Array | null, stallMs?: number): void;
  /** Cuts the connection at once, and gives back what it held. */
  abort(): void;
}

/** Why a stream was closed; a label of `penstock_connections_closed_total`. `lost`: with the worker that held it. */
export const CLOSE_REASONS = [
  "client",
  "end",
  "stalled",
  "slow",
  "overload",
  "expired",
  "age",
  "shutdown",
  "cut",
  "failed",
  "lost",
] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];
