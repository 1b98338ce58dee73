/** Where a reader is in its stream, and what it knows of the stream up to there. Pure: no I/O, the time is passed in. */
import { compareEventIds, type EventId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { Gap } from "../broker.ts";
import { findLoss, type Sight } from "./proof.ts";
import type { StreamInfo } from "./stream-info.ts";

/** Redis may remove a key so much before we think that its time is over. */
const EXPIRY_SLACK_MS = 1_500;

export class ReaderPlace {
  /** The id behind which is read; ZERO_ID before everything. */
  cursor: EventId = ZERO_ID;
  /** The cursor is an entry that was read, so it must be there at the next read. */
  exact = false;
  /** Entries ever added up to the cursor; -1: not known. */
  #added = 0;
  /** Deletions up to this id have been told. */
  #told: EventId = ZERO_ID;
  /** When the key's time to live ends, if nobody publishes. */
  #expiresAt = 0;
  /** When the counts were compared, or the last entry came. */
  provedAt = 0;
  /** The cursor when the counts were last compared: the last place up to which nothing is missing for certain. */
  #provedId: EventId = ZERO_ID;
  /** What was read before the key went missing; ids that do not lie behind it need a rollback. */
  #held: EventId | null = null;

  /** Begins at the youngest entry. */
  start(info: StreamInfo | null, youngest: EventId | null, pttl: number, now: number): void {
    this.cursor = info?.lastId ?? ZERO_ID;
    this.exact = youngest !== null && youngest === this.cursor;
    if (!this.exact && youngest !== null && info?.added === null) {
      // Redis before 7 cannot show that nothing was between the youngest entry and the next one: hold on to the entry.
      this.cursor = youngest;
      this.exact = true;
    }
    this.rebase(info, pttl, now);
  }

  /** What is missing by what a transaction saw. A rollback is only found here; where to go on behind it, the caller looks for. */
  findGap(sight: Sight): Gap | null {
    const added = this.#added < 0 ? null : this.#added;
    const gap = findLoss({ id: this.cursor, exact: this.exact, added, told: this.#told }, sight);
    if (gap?.reason === "rollback") return gap;
    const first = sight.behind[0] ?? null;
    if (this.#held !== null && (first !== null || gap !== null)) {
      const held = this.#held;
      this.#held = null;
      // Its key had gone and is there again: all that it holds is new.
      if (first !== null && compareEventIds(first, held) <= 0) {
        return { reason: "rollback", from: held, to: first, missed: null };
      }
      return gap && { ...gap, from: held };
    }
    return gap !== null && sight.found ? this.#sinceProof(gap, sight.info!.maxDeletedId) : gap;
  }

  /** Entries up to `last` were handed over. */
  advance(last: EventId, count: number, ttlMs: number, now: number): void {
    this.cursor = last;
    this.exact = true;
    if (this.#added >= 0) this.#added += count;
    this.provedAt = now;
    this.#expiresAt = Math.max(this.#expiresAt, now + ttlMs);
  }

  /** A full page was compared, and more is to come: the counts go on from here, unless something was missing. */
  rebasePage(info: StreamInfo, hadGap: boolean): void {
    if (hadGap) this.#added = -1;
    this.#told = info.maxDeletedId ?? ZERO_ID;
    this.#provedId = this.cursor;
  }

  /** All was read and compared: the counts begin anew from here. `pttl` is Redis' answer: -1 never, -2 no key. */
  rebase(info: StreamInfo | null, pttl: number, now: number): void {
    if (info !== null && info.added !== null && info.lastId !== this.cursor) {
      this.cursor = info.lastId;
      this.exact = false;
    }
    this.#added = info === null ? 0 : (info.added ?? -1);
    this.#told = info?.maxDeletedId ?? ZERO_ID;
    this.#expiresAt = pttl === -1 ? Number.POSITIVE_INFINITY : now + Math.max(pttl, 0);
    this.provedAt = now;
    this.#provedId = this.cursor;
  }

  /** Goes back to what Redis still holds of what was read; null: nothing. */
  rollBackTo(common: EventId | null): void {
    this.cursor = common ?? ZERO_ID;
    this.exact = common !== null;
    this.#added = -1;
    this.#provedId = ZERO_ID;
  }

  /** The key is gone. Its time to live ended, when nobody can have published since it was read last; else it was removed. */
  isExpired(unreadMs: number, ttlMs: number, now: number): boolean {
    return unreadMs < ttlMs && now >= this.#expiresAt - EXPIRY_SLACK_MS;
  }

  /** The count began anew behind the cursor: another stream has come under the same name, and the one before was not seen to go. */
  isReplaced(info: StreamInfo): boolean {
    const isLater = info.firstId !== null && compareEventIds(info.firstId, this.cursor) > 0;
    return isLater && info.added !== null && info.added < this.#added;
  }

  /** Waits for the key to come back. */
  keyIsGone(held: EventId): void {
    this.#held = held;
    this.cursor = ZERO_ID;
    this.exact = false;
    this.#added = 0;
    this.#told = ZERO_ID;
    this.#provedId = ZERO_ID;
  }

  /** The cursor is there and something is missing: behind it, or before it and not noticed when it was passed. */
  #sinceProof(gap: Gap, maxDeletedId: EventId | null): Gap {
    if (this.#provedId === ZERO_ID || this.#provedId === this.cursor) return gap;
    const isBefore = maxDeletedId !== null && compareEventIds(maxDeletedId, this.cursor) < 0;
    return { ...gap, from: this.#provedId, to: isBefore ? this.cursor : gap.to };
  }
}
