/** Sets a bench beside one that was saved. */
import { readFileSync } from "node:fs";
import { ConfigError } from "../errors.ts";
import { type BenchDocument, type SavedDocument, savedSchema, type WorkloadResult } from "./document.ts";
import { MEASURES, type MeasureInfo } from "./measures.ts";

export interface ComparedMeasure {
  readonly workload: string;
  readonly label: string;
  readonly before: number;
  readonly now: number;
  /** Now ÷ before; null where it was 0. */
  readonly ratio: number | null;
  /** Worse by more than the tolerance. */
  readonly isWorse: boolean;
}

export interface Comparison {
  /** When the other one was taken. */
  readonly when: string;
  readonly measures: readonly ComparedMeasure[];
  /** What could not be compared, and what makes a comparison doubtful. */
  readonly notes: readonly string[];
}

/** Throws ConfigError where the file is none that --save has written. */
export function readSaved(path: string): SavedDocument {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(`--compare ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  const saved = savedSchema.safeParse(value);
  if (!saved.success) throw new ConfigError(`--compare ${path} is no bench of this format; give a file that --save has written.`);
  return saved.data;
}

/** `tolerancePercent`: how much worse something may be. */
export function compare(now: BenchDocument, then: SavedDocument, tolerancePercent: number): Comparison {
  const measures: ComparedMeasure[] = [];
  const notes: string[] = [];
  for (const name of ["cpu", "cores", "node"] as const) {
    if (now.machine[name] !== then.machine[name])
      notes.push(
        `the other one ran with ${name} ${then.machine[name]}, this one with ${now.machine[name]}: take no difference for the gateway's`,
      );
  }
  for (const result of now.results) {
    const other = then.results.find(({ workload }) => workload === result.workload);
    const obstacle = other === undefined ? "it is not in the file" : obstacleBetween(result, other);
    if (other === undefined || obstacle !== null) {
      notes.push(`${result.workload} is not compared: ${obstacle}`);
      continue;
    }
    for (const measure of MEASURES) {
      // Its latency is that of the connects.
      if (result.workload === "connect" && measure.name.startsWith("connectP")) continue;
      const before = other.measures[measure.name] ?? null;
      const value = result.measures[measure.name];
      if (before !== null && value !== null)
        measures.push(compareMeasure(result.workload, measure, before, value, tolerancePercent));
    }
  }
  return { when: then.when, measures, notes };
}

function obstacleBetween(result: WorkloadResult, other: SavedDocument["results"][number]): string | null {
  if (result.verdict !== "ok" && result.verdict !== "faulty") return `this one is ${result.verdict}`;
  if (other.verdict !== "ok" && other.verdict !== "faulty") return `the other one is ${other.verdict}`;
  for (const [name, value] of Object.entries(result.plan)) {
    if (other.plan[name] !== value) return `${name} was ${other.plan[name] ?? "not there"}, and is ${value}`;
  }
  return null;
}

function compareMeasure(
  workload: string,
  measure: MeasureInfo,
  before: number,
  now: number,
  tolerancePercent: number,
): ComparedMeasure {
  const worse = measure.better === "less" ? now - before : before - now;
  const isWorse = measure.isJudged && worse > measure.slack && worse > (Math.abs(before) * tolerancePercent) / 100;
  return {
    workload,
    label: measure.label,
    before,
    now,
    ratio: before === 0 ? null : Number((now / before).toPrecision(3)),
    isWorse,
  };
}
