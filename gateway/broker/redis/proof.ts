/** Whether anything was lost between a reader's place and what Redis holds now. Pure: what was read in one transaction goes in, a gap or null comes out. */
import { compareEventIds, type EventId, ZERO_ID } from "../../../protocol/event-id.ts";
import type { Gap } from "../broker.ts";
import type { StreamInfo } from "./stream-info.ts";

/** Where a reader is: just behind `id`. */
export interface Place {
  readonly id: EventId;
  /** True when `id` was an entry that the reader held; false for a time, or an id that was only ever given out. */
  readonly exact: boolean;
  /** How many entries the stream had been given up to here; null when that is not known. */
  readonly added: number | null;
  /** Deletions up to this id have been told; ZERO_ID when none have. */
  readonly told: EventId;
}

/** What one transaction saw. */
export interface Sight {
  /** null: no such key. */
  readonly info: StreamInfo | null;
  /** The entry at the place is still there. */
  readonly found: boolean;
  /** Ids of entries behind the place, in order. */
  readonly behind: readonly EventId[];
  /** More may lie behind the last of them. */
  readonly more: boolean;
}

/** Null when nothing was lost, or when a `since` is all there was to go by and nothing speaks for a loss. */
export function findLoss(place: Place, sight: Sight): Gap | null {
  const { info, found, behind } = sight;
  const first = behind[0] ?? null;
  const from = place.id === ZERO_ID ? null : place.id;
  if (info === null) return place.exact && from !== null ? { reason: "retention", from, to: null, missed: null } : null;
  if (compareEventIds(place.id, info.lastId) > 0) {
    return place.exact ? { reason: "rollback", from, to: first, missed: null } : null;
  }
  // However it shows that something is missing: up to the last that was deleted, some of it may lie behind entries that are there.
  const retention = (count: number | null): Gap => ({
    reason: "retention",
    from,
    to: firstBeyondDeleted(info, sight),
    missed: count,
  });
  const missed = countMissed(place, sight, info);
  if (found) {
    if (missed !== null) return missed > 0 ? retention(missed) : null;
    return isDeletedBehind(place, info) ? retention(null) : null;
  }
  if (from === null) {
    // Before everything: without a count there is nothing that could have been held.
    return missed !== null && missed > 0 ? retention(missed) : null;
  }
  if (place.id === info.lastId) return null;
  const isOlderThanKept = info.firstId === null || compareEventIds(info.firstId, place.id) > 0;
  if (isOlderThanKept) {
    if (missed !== null) return missed > 0 ? retention(missed) : null;
    if (place.exact) return retention(null);
    // Before Redis 7 nothing tells whether a stream was ever trimmed, and a time is no promise that something was there.
    return info.added !== null && info.added > info.length ? retention(null) : null;
  }
  // The stream holds older entries but not this one: it was deleted, or it never was, or is no longer, in this history.
  const deleted = info.maxDeletedId === null ? -1 : compareEventIds(info.maxDeletedId, place.id);
  if (place.exact && deleted < 0) return { reason: "rollback", from, to: first, missed: null };
  if (missed !== null) return missed > 0 ? retention(missed) : null;
  if (!place.exact && !isDeletedBehind(place, info)) return null;
  // Where the place itself is the newest that was deleted, everything behind it is there.
  return deleted === 0 ? null : retention(null);
}

/** Entries that were added behind the place and are not there; null when the counts cannot tell. */
function countMissed(place: Place, { found, behind, more }: Sight, info: StreamInfo): number | null {
  if (place.added === null || info.added === null) return null;
  const added = info.added - place.added;
  // Where the place is older than all that is kept, all that is kept lies behind it.
  const allIsBehind = !found && info.firstId !== null && compareEventIds(info.firstId, place.id) > 0;
  const kept = allIsBehind || info.length === 0 ? info.length : more ? null : behind.length;
  // Fewer added than kept: the count began anew, with another stream under the same name.
  return kept === null || added < kept ? null : added - kept;
}

function isDeletedBehind(place: Place, info: StreamInfo): boolean {
  if (info.maxDeletedId === null || compareEventIds(info.maxDeletedId, place.told) <= 0) return false;
  return compareEventIds(info.maxDeletedId, place.id) > 0;
}

function firstBeyondDeleted(info: StreamInfo, { behind }: Sight): EventId | null {
  const deleted = info.maxDeletedId;
  if (deleted === null || deleted === ZERO_ID) return behind[0] ?? null;
  return behind.find((id) => compareEventIds(id, deleted) > 0) ?? null;
}
