/** What the readers of a workload got, and what was wrong with it. */
import type { GapReason } from "../../protocol/wire.ts";

export interface Tally {
  /** Events that were read, doubled ones too. */
  events: number;
  /** Events that were published and confirmed, did not come, and lie in no gap. */
  lost: number;
  /** Events that came a second time. */
  doubled: number;
  /** Events behind one with a higher id, or a later number. */
  disordered: number;
  /** Gaps that name a number of missing events where none was missing. */
  falseGaps: number;
  /** Events of other runs, frames and ids that cannot be read, answers that break HTTP. */
  unreadable: number;
  /** Readers that heard no `end` although their run was ended. */
  endless: number;
  /** Anything behind `end`, another `end` included. */
  behindEnd: number;
  /** Streams that the gateway closed before their run was ended. */
  closedEarly: number;
  /** Publishes that were not confirmed. */
  unpublished: number;
  /** Runs that could not be ended; they expire by themselves. */
  unended: number;
  /** Missing events that gaps told of. */
  missed: number;
  readonly gaps: Map<string, number>;
  /** The first of what could not be read, or was refused, in words. */
  readonly examples: string[];
}

export type FaultName = Exclude<keyof Tally, "events" | "missed" | "gaps" | "examples">;

const FAULTS: ReadonlyMap<FaultName, string> = new Map([
  ["lost", "events lost without a gap"],
  ["doubled", "events doubled"],
  ["disordered", "events out of order"],
  ["falseGaps", "gaps where nothing was missing"],
  ["unreadable", "frames that cannot be read"],
  ["endless", "readers that heard no end of their run"],
  ["behindEnd", "frames behind the end"],
  ["closedEarly", "streams closed early by the gateway"],
  ["unpublished", "publishes not confirmed"],
  ["unended", "runs that could not be ended"],
]);
/** Gaps that tell of no loss: history is away, or the reader is to come back. */
const HARMLESS: readonly GapReason[] = ["outage", "shutdown"];
const MAX_EXAMPLES = 3;

export function createTally(): Tally {
  return {
    events: 0,
    lost: 0,
    doubled: 0,
    disordered: 0,
    falseGaps: 0,
    unreadable: 0,
    endless: 0,
    behindEnd: 0,
    closedEarly: 0,
    unpublished: 0,
    unended: 0,
    missed: 0,
    gaps: new Map(),
    examples: [],
  };
}

export function addExample(tally: Tally, what: string): void {
  if (tally.examples.length < MAX_EXAMPLES && !tally.examples.includes(what)) tally.examples.push(what);
}

/** Each kind of fault that there was, as `events doubled: 3`. */
export function faultsOf(tally: Tally): string[] {
  return [...FAULTS].filter(([name]) => tally[name] > 0).map(([name, words]) => `${words}: ${tally[name].toLocaleString("en")}`);
}

export function isHarmless(reason: string): boolean {
  return (HARMLESS as readonly string[]).includes(reason);
}
