/** What both ends of the wire share: event names, gap reasons, limits. */

/** Event names that only the server may send; a producer's kind may not be one of them. */
export const RESERVED_KINDS = ["end", "gap", "error", "cursor", "system"] as const;
export type ReservedKind = (typeof RESERVED_KINDS)[number];

/**
 * Why events are missing, or may be, at this place of a stream.
 * - `outage`: the broker could not be read; what follows is complete unless a second gap says otherwise.
 * - `overflow`: this reader was too slow, and the policy `gap` skipped it ahead; or the server was short of memory and cut its stream.
 * - `shutdown`: the server had to cut this stream before everything was written.
 * - `retention`: entries were trimmed, deleted or expired before this reader got them.
 * - `rollback`: the broker lost entries that it had acknowledged, or the position was never in this stream.
 */
export const GAP_REASONS = ["outage", "overflow", "shutdown", "retention", "rollback"] as const;
export type GapReason = (typeof GAP_REASONS)[number];

/** Largest broker frame, `{"type":"event","event":{…}}` as compact UTF-8, in bytes: 64 KiB of payload and 4 KiB of envelope. */
export const MAX_FRAME_BYTES = 69_632;
/** Most events in one publish. */
export const MAX_BATCH_EVENTS = 1_000;
/** Largest publish body in bytes. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** Entries later than the end of their run by no more than this still come before `end`. */
export const STRAGGLER_MS = 5_000;
/** Live readers hear `end` this long after the end entry. */
export const END_DELAY_MS = 1_000;
