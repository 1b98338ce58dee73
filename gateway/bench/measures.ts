/** The figures of a bench: their names for people, and which way is better. Table and comparison are made from it. */
import type { Measures } from "./document.ts";

export interface MeasureInfo {
  readonly name: keyof Measures;
  readonly label: string;
  readonly better: "less" | "more";
  /** A difference smaller than this is none, whatever the ratio: timers and scrapes are not finer. */
  readonly slack: number;
  /** Whether being worse makes a comparison fail. One slow event among many thousands does not. */
  readonly isJudged: boolean;
}

export const MEASURES: readonly MeasureInfo[] = [
  { name: "connectsPerSecond", label: "connects a second", better: "more", slack: 1, isJudged: true },
  { name: "connectP50Ms", label: "connect p50, ms", better: "less", slack: 1, isJudged: true },
  { name: "connectP99Ms", label: "connect p99, ms", better: "less", slack: 5, isJudged: true },
  { name: "eventsPerSecond", label: "events a second", better: "more", slack: 1, isJudged: true },
  { name: "latencyP50Ms", label: "latency p50, ms", better: "less", slack: 1, isJudged: true },
  { name: "latencyP99Ms", label: "latency p99, ms", better: "less", slack: 5, isJudged: true },
  { name: "latencyP999Ms", label: "latency p99.9, ms", better: "less", slack: 5, isJudged: false },
  { name: "latencyMaxMs", label: "latency max, ms", better: "less", slack: 5, isJudged: false },
  { name: "calmP99Ms", label: "p99 before the stall, ms", better: "less", slack: 5, isJudged: false },
  { name: "catchUpSeconds", label: "catch-up, s", better: "less", slack: 0.5, isJudged: true },
  { name: "cpuSecondsPerMillion", label: "CPU s a million events", better: "less", slack: 0.5, isJudged: true },
  { name: "cpuMicrosPerConnect", label: "CPU µs a connect", better: "less", slack: 20, isJudged: true },
  { name: "kibPerConnection", label: "KiB a connection", better: "less", slack: 1, isJudged: true },
];
