/** What a run of the tests came to, from vitest's JSON report. */
import { existsSync, readFileSync } from "node:fs";

export interface Result {
  passed: number;
  failed: number;
  skipped: number;
}

/** The parts of vitest's report (Jest's shape) that are read. */
export interface Report {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTodoTests: number;
  testResults: { status: string; assertionResults: { status: string }[] }[];
}

/**
 * Reads the report; without one the run counts as one failure. `failedChecks` are failures that are no tests (types, style), `exitCode` is
 * vitest's own: it also knows of errors outside of any test.
 */
export function readReport(file: string, failedChecks: number, exitCode: number): Result {
  const report = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Report) : null;
  return summarize(report, failedChecks, exitCode);
}

export function summarize(report: Report | null, failedChecks: number, exitCode: number): Result {
  const passed = report?.numPassedTests ?? 0;
  const skipped = report === null ? 0 : report.numPendingTests + report.numTodoTests;
  // A file that could not be loaded has failed without a failed test in it.
  const broken = report?.testResults.filter(
    (f) => f.status === "failed" && f.assertionResults.every((t) => t.status !== "failed"),
  );
  const failed = (report?.numFailedTests ?? 0) + (broken?.length ?? 0) + failedChecks;
  const ranNothing = passed + failed === 0;
  return { passed, failed: failed === 0 && (exitCode !== 0 || ranNothing) ? 1 : failed, skipped };
}

/** The last line of `npm test`. */
export function closingLine(result: Result): string {
  const skipped = result.skipped > 0 ? `, ${result.skipped} skipped` : "";
  return `${result.passed} passed, ${result.failed} failed${skipped}`;
}

/** What tests have written down as not to be had on this machine, each once. */
export function notesOf(file: string): string[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return [...new Set(lines.map((line) => line.trim()).filter((line) => line !== ""))];
}
