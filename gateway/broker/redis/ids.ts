/** Neighbours of stream ids, for ranges that Redis before 6.2 knows only inclusively. */
import { type EventId, ZERO_ID } from "../../../protocol/event-id.ts";

const MAX_SEQUENCE = 18446744073709551615n;

/** The greatest id before `id`; null before `0-0`. `XREAD` from there returns `id` itself first, if it is still there. */
export function previousId(id: EventId): EventId | null {
  if (id === ZERO_ID) return null;
  const dash = id.indexOf("-");
  const sequence = id.slice(dash + 1);
  if (sequence.length < 16) {
    const number = Number(sequence);
    if (number > 0) return `${id.slice(0, dash)}-${number - 1}`;
  } else {
    return `${id.slice(0, dash)}-${BigInt(sequence) - 1n}`;
  }
  return `${BigInt(id.slice(0, dash)) - 1n}-${MAX_SEQUENCE}`;
}
