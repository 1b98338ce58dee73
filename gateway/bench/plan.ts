/** What a bench does: its workloads, and how large each is. */
import { ConfigError } from "../errors.ts";

export const WORKLOADS = ["connect", "fan-out", "many-runs", "replay", "stalled"] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

/** Sizes as the command line gives them, for all workloads that have such a size. */
export interface Sizes {
  readonly readers?: number;
  readonly runs?: number;
  readonly rate?: number;
  readonly seconds?: number;
  readonly bytes?: number;
  readonly stalledPercent?: number;
  readonly replayEvents?: number;
  readonly connectRate?: number;
}

/** One workload with its sizes; those that it does not have are 0. */
export interface Plan {
  readonly workload: WorkloadName;
  readonly readers: number;
  readonly runs: number;
  /** Events a second, over all runs. */
  readonly rate: number;
  /** How long events are published; with `stalled` twice: while all read, and while some do not. */
  readonly seconds: number;
  /** Bytes of an event's payload. */
  readonly bytes: number;
  readonly stalledPercent: number;
  /** Events of each run before anybody reads it. */
  readonly replayEvents: number;
  /** Connects a second. */
  readonly connectRate: number;
}

/** What a gateway allows unless told otherwise (streaming.maxSubscribersPerStream). */
const READERS_PER_RUN = 100;

type Preset = Omit<Plan, "workload" | "runs" | "connectRate"> & { readonly readersPerRun: number };

const PRESETS: Readonly<Record<WorkloadName, Preset>> = {
  connect: { readers: 1_000, readersPerRun: READERS_PER_RUN, rate: 0, seconds: 0, bytes: 0, stalledPercent: 0, replayEvents: 0 },
  "fan-out": {
    readers: 1_000,
    readersPerRun: READERS_PER_RUN,
    rate: 100,
    seconds: 5,
    bytes: 200,
    stalledPercent: 0,
    replayEvents: 0,
  },
  "many-runs": { readers: 1_000, readersPerRun: 2, rate: 500, seconds: 5, bytes: 200, stalledPercent: 0, replayEvents: 0 },
  replay: {
    readers: 1_000,
    readersPerRun: READERS_PER_RUN,
    rate: 0,
    seconds: 0,
    bytes: 200,
    stalledPercent: 0,
    replayEvents: 200,
  },
  // 5 MB for each reader: more than the kernels' buffers take for one that does not read.
  stalled: {
    readers: 100,
    readersPerRun: READERS_PER_RUN,
    rate: 100,
    seconds: 5,
    bytes: 10_000,
    stalledPercent: 5,
    replayEvents: 0,
  },
};
const CONNECT_RATE = 1_000;

/** In the order of WORKLOADS, each once. Throws ConfigError for sizes that do not go together. */
export function plansOf(names: readonly string[], sizes: Sizes): Plan[] {
  const wanted = new Set(names.flatMap((name) => name.split(",")).map((name) => name.trim()));
  for (const name of wanted) {
    if (name !== "all" && !(WORKLOADS as readonly string[]).includes(name))
      throw new ConfigError(`--workload ${JSON.stringify(name)} is none; choose of ${WORKLOADS.join(", ")}, all.`);
  }
  return WORKLOADS.filter((name) => wanted.has(name) || wanted.has("all")).map((name) => planOf(name, sizes));
}

/** What the gateway must be told so that it takes the readers of a plan; null where its defaults do. */
export function readersPerRun(plan: Plan): number {
  return Math.ceil(plan.readers / plan.runs);
}

function planOf(workload: WorkloadName, sizes: Sizes): Plan {
  const preset = PRESETS[workload];
  const readers = sizes.readers ?? preset.readers;
  const plan: Plan = {
    workload,
    readers,
    runs: sizes.runs ?? Math.ceil(readers / preset.readersPerRun),
    // A size that a workload does not have stays 0, whatever is asked.
    rate: preset.rate && (sizes.rate ?? preset.rate),
    seconds: preset.seconds && (sizes.seconds ?? preset.seconds),
    bytes: preset.bytes && (sizes.bytes ?? preset.bytes),
    stalledPercent: preset.stalledPercent && (sizes.stalledPercent ?? preset.stalledPercent),
    replayEvents: preset.replayEvents && (sizes.replayEvents ?? preset.replayEvents),
    connectRate: sizes.connectRate ?? CONNECT_RATE,
  };
  if (plan.runs > readers) throw new ConfigError("--runs is more than --readers: a run that nobody reads measures nothing.");
  if (workload === "stalled" && readers < 2)
    throw new ConfigError("--readers: the workload stalled needs two, one that reads and one that does not.");
  return plan;
}
