/** What one reader lacks, and the gaps that it was told: which of the one do the other cover? */
import { parseEventId } from "../../protocol/event-id.ts";
import { isHarmless, type Tally } from "./tally.ts";

export interface Id {
  readonly milliseconds: number;
  readonly sequence: number;
}

/** Numbers `first` to `last` did not come between two events. */
export interface Hole {
  readonly first: number;
  readonly last: number;
  /** Id of the event before it. */
  readonly before: Id;
  /** Id of the event behind it. */
  readonly after: Id;
  /** It lies where the broker lost what it had. */
  readonly excused: boolean;
}

interface Gap {
  readonly reason: string;
  readonly from: Id;
  /** Null until the next event, for a gap that did not name it. */
  to: Id | null;
  readonly missed: number | null;
}

const BEGINNING: Id = { milliseconds: 0, sequence: 0 };

export class Missing {
  readonly #holes: Hole[] = [];
  readonly #gaps: Gap[] = [];
  /** Gaps before this place were followed by an event. */
  #followed = 0;

  hole(hole: Hole): void {
    this.#holes.push(hole);
  }

  /** Takes an event out of the hole that it was missing from; false when it was missing from none. */
  comesLate(n: number): boolean {
    const index = this.#holes.findIndex(({ first, last }) => first <= n && n <= last);
    const hole = this.#holes[index];
    if (hole === undefined) return false;
    const rest: Hole[] = [];
    if (hole.first < n) rest.push({ ...hole, last: n - 1 });
    if (n < hole.last) rest.push({ ...hole, first: n + 1 });
    this.#holes.splice(index, 1, ...rest);
    return true;
  }

  /** Reads a gap frame's data; null when it is none. */
  gap(data: string): { readonly reason: string; readonly missed: number | null } | null {
    const gap = readGap(data);
    if (gap !== null) this.#gaps.push(gap);
    return gap;
  }

  /** An event shows how far a gap without `to` reached. */
  eventCame(id: Id): void {
    for (const gap of this.#gaps.slice(this.#followed)) gap.to ??= id;
    this.#followed = this.#gaps.length;
  }

  /** Adds what is lost, and gaps that are not, to the tally. */
  count(unconfirmed: ReadonlySet<number>, tally: Tally): void {
    const gaps = this.#gaps.filter(({ reason }) => !isHarmless(reason));
    for (const hole of this.#holes) {
      if (hole.excused) continue;
      let lacking = 0;
      for (let n = hole.first; n <= hole.last; n++) if (!unconfirmed.has(n)) lacking++;
      tally.lost += isCovered(hole, gaps) ? Math.max(0, lacking - told(hole, gaps)) : lacking;
    }
    for (const gap of gaps) {
      const isFalse = (gap.missed ?? 0) > 0 && gap.reason !== "rollback" && !this.#holes.some((hole) => meet(hole, gap));
      if (isFalse) tally.falseGaps++;
    }
  }
}

/** Several gaps may cover one hole together. Their bounds are not in them, so two that only meet leave out the event where they do. */
function isCovered(hole: Hole, gaps: readonly Gap[]): boolean {
  let reached = hole.before;
  for (const gap of gaps.toSorted((a, b) => compare(a.from, b.from))) {
    if (compare(gap.from, hole.before) > 0 && compare(gap.from, reached) >= 0) break;
    if (gap.to === null) return true;
    if (compare(gap.to, reached) > 0) reached = gap.to;
  }
  return compare(reached, hole.after) >= 0;
}

/** How many missing events the gaps over a hole tell of; infinitely many where one does not know. */
function told(hole: Hole, gaps: readonly Gap[]): number {
  return gaps.filter((gap) => meet(hole, gap)).reduce((sum, { missed }) => sum + (missed ?? Number.POSITIVE_INFINITY), 0);
}

function meet(hole: Hole, gap: Gap): boolean {
  return compare(gap.from, hole.after) < 0 && (gap.to === null || compare(gap.to, hole.before) > 0);
}

function compare(a: Id, b: Id): number {
  return a.milliseconds === b.milliseconds ? a.sequence - b.sequence : a.milliseconds - b.milliseconds;
}

function readGap(data: string): Gap | null {
  try {
    const { reason, from, to, missed } = JSON.parse(data) as Record<string, unknown>;
    const start = from === null ? BEGINNING : readId(from);
    const end = to === null ? null : readId(to);
    const count = typeof missed === "number" || missed === null ? missed : undefined;
    if (typeof reason !== "string" || start === undefined || end === undefined || count === undefined) return null;
    return { reason, from: start, to: end, missed: count };
  } catch {
    return null;
  }
}

function readId(value: unknown): Id | undefined {
  const id = typeof value === "string" ? parseEventId(value) : null;
  if (id === null) return undefined;
  const [milliseconds, sequence] = id.split("-").map(Number) as [number, number];
  return { milliseconds, sequence };
}
