/** Entries as Redis answers them, made into what the broker hands over. */
import type { EventId } from "../../../protocol/event-id.ts";
import type { StoredEntry } from "../broker.ts";
import type { Reply } from "./resp.ts";

const FIELD_P = 112;
const FIELD_K = 107;
const FIELD_I = 105;

/** The id of an entry, which is `[id, [field, value, …]]`. */
export function idOf(entry: Reply): EventId {
  return ((entry as Reply[])[0] as Buffer).toString("latin1");
}

/** What a timed-out publish stored twice, it stored under the same key and index: the second one is known by them. */
export class DuplicateFilter {
  readonly #capacity: number;
  readonly #seen = new Map<string, EventId>();

  /** `capacity`: how many keyed entries are remembered; a repeat follows within seconds or never. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** True when another entry with this mark went by lately. */
  isRepeat(id: EventId, mark: string): boolean {
    const first = this.#seen.get(mark);
    if (first !== undefined) return first !== id;
    this.#seen.set(mark, id);
    if (this.#seen.size > this.#capacity) {
      for (const oldest of this.#seen.keys()) {
        this.#seen.delete(oldest);
        break;
      }
    }
    return false;
  }
}

/** The entries of one reply that are handed over, and how many were dropped as repeats. */
export interface Taken {
  readonly entries: StoredEntry[];
  readonly dropped: number;
}

/** Takes the entries from `start` on. `epoch` tells histories apart: after a rollback an entry may come again, for the first is gone. */
export function takeEntries(reply: readonly Reply[], start: number, filter: DuplicateFilter, epoch = 0): Taken {
  const entries: StoredEntry[] = [];
  let dropped = 0;
  for (let at = start; at < reply.length; at++) {
    const [idBytes, fields] = reply[at] as [Buffer, Buffer[]];
    const id = idBytes.toString("latin1");
    if (fields.length === 2 && isField(fields[0]!, FIELD_P)) {
      entries.push({ id, payload: fields[1]! });
      continue;
    }
    let payload: Buffer | null = null;
    let key: Buffer | null = null;
    let index: Buffer | null = null;
    for (let field = 0; field + 1 < fields.length; field += 2) {
      if (payload === null && isField(fields[field]!, FIELD_P)) payload = fields[field + 1]!;
      else if (isField(fields[field]!, FIELD_K)) key = fields[field + 1]!;
      else if (isField(fields[field]!, FIELD_I)) index = fields[field + 1]!;
    }
    if (key !== null && index !== null && filter.isRepeat(id, `${key.toString("latin1")}:${index.toString("latin1")}:${epoch}`)) {
      dropped++;
    } else {
      entries.push({ id, payload });
    }
  }
  return { entries, dropped };
}

/** True for the entry that ends a run; members beside `type` are allowed, as ZenML allows them. */
export function isEndPayload(payload: Buffer | null): boolean {
  if (payload === null || payload.length > 1_024) return false;
  const text = payload.toString("utf8");
  if (text === END_TEXT) return true;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "type" in value && value.type === "end";
  } catch {
    return false;
  }
}

export const END_TEXT = '{"type":"end"}';

function isField(name: Buffer, letter: number): boolean {
  return name.length === 1 && name[0] === letter;
}
