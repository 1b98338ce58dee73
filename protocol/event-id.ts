/**
 * Ids of entries in a Redis stream, `<milliseconds>-<sequence>`, both unsigned 64-bit integers
 * (https://redis.io/docs/latest/develop/data-types/streams/#entry-ids). They stay strings: a JavaScript number cannot hold one.
 */

/** A canonical id: ASCII digits, no leading zeros, both halves below 2^64. */
export type EventId = string;

/** Comes before every entry that a stream can hold. */
export const ZERO_ID: EventId = "0-0";

const SHAPE = /^[0-9]{1,20}-[0-9]{1,20}$/;
const MAX_HALF = "18446744073709551615";

/** Reads a position that a client sent; null when it is not `<u64>-<u64>`. Leading zeros go. */
export function parseEventId(text: string): EventId | null {
  if (!SHAPE.test(text)) return null;
  const dash = text.indexOf("-");
  const milliseconds = trimZeros(text.slice(0, dash));
  const sequence = trimZeros(text.slice(dash + 1));
  if (compareDigits(milliseconds, MAX_HALF) > 0 || compareDigits(sequence, MAX_HALF) > 0) return null;
  return `${milliseconds}-${sequence}`;
}

/** Negative when `a` comes before `b`, 0 when they are equal, positive otherwise. Both canonical. */
export function compareEventIds(a: EventId, b: EventId): number {
  const dashA = a.indexOf("-");
  const dashB = b.indexOf("-");
  if (dashA !== dashB) return dashA - dashB;
  if (a.length === b.length) return a < b ? -1 : a > b ? 1 : 0;
  const milliseconds = compareDigits(a.slice(0, dashA), b.slice(0, dashB));
  return milliseconds !== 0 ? milliseconds : a.length - b.length;
}

/** The greatest id before `id`; null before `0-0`. `XREAD` from there returns `id` itself first, if it is still there. */
export function previousId(id: EventId): EventId | null {
  if (id === ZERO_ID) return null;
  const dash = id.indexOf("-");
  const sequence = id.slice(dash + 1);
  // Asked for at each read of a live run: BigInt only where a number cannot hold it.
  if (sequence.length > 15) return `${id.slice(0, dash)}-${BigInt(sequence) - 1n}`;
  const number = Number(sequence);
  if (number > 0) return `${id.slice(0, dash)}-${number - 1}`;
  return `${BigInt(id.slice(0, dash)) - 1n}-${MAX_HALF}`;
}

/** The milliseconds of an id as a number; exact below 2^53, which Redis' own clock stays under. */
export function millisecondsOf(id: EventId): number {
  return Number(id.slice(0, id.indexOf("-")));
}

function compareDigits(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

function trimZeros(digits: string): string {
  let start = 0;
  while (start < digits.length - 1 && digits.charCodeAt(start) === 48) start++;
  return start === 0 ? digits : digits.slice(start);
}
