import { describe, expect, it } from "vitest";
import { closingLine, type Report, summarize } from "./summary.ts";

function report(changes: Partial<Report>): Report {
  return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [], ...changes };
}

describe("the closing line of npm test", () => {
  it("counts passed and failed tests", () => {
    const file = { status: "failed", assertionResults: [{ status: "failed" }, { status: "passed" }] };
    const result = summarize(report({ numPassedTests: 41, numFailedTests: 1, testResults: [file] }), 0, 1);
    expect(closingLine(result)).toBe("41 passed, 1 failed");
  });

  it("names skipped and unwritten tests only when there are some", () => {
    const result = summarize(report({ numPassedTests: 3, numPendingTests: 2, numTodoTests: 1 }), 0, 0);
    expect(closingLine(result)).toBe("3 passed, 0 failed, 3 skipped");
  });

  it("counts a file that could not be loaded as a failure", () => {
    const file = { status: "failed", assertionResults: [] };
    expect(closingLine(summarize(report({ numPassedTests: 5, testResults: [file] }), 0, 1))).toBe("5 passed, 1 failed");
  });

  it("counts a file whose hook failed after its tests passed", () => {
    const file = { status: "failed", assertionResults: [{ status: "passed" }] };
    expect(closingLine(summarize(report({ numPassedTests: 1, testResults: [file] }), 0, 1))).toBe("1 passed, 1 failed");
  });

  it("counts failed checks of types and style", () => {
    expect(closingLine(summarize(report({ numPassedTests: 5 }), 2, 0))).toBe("5 passed, 2 failed");
  });

  it("is a failure when an error came from outside of any test", () => {
    expect(summarize(report({ numPassedTests: 5 }), 0, 1).failed).toBe(1);
  });

  it("is a failure when there is no report or no test ran", () => {
    expect(summarize(null, 0, 1).failed).toBe(1);
    expect(summarize(report({}), 0, 0).failed).toBe(1);
  });
});
