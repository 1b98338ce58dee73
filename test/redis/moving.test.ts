import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const run = promisify(execFile);
const scenario = fileURLToPath(new URL("moving-scenario.ts", import.meta.url));

const canUnshare = await run("unshare", ["-m", "mount", "--bind", "/etc/hosts", "/etc/hosts"]).then(
  () => true,
  () => false,
);

// Needs the right to mount (root on Linux): without it a name cannot be made to stand for other addresses.
describe.skipIf(!canUnshare)("a cluster whose nodes come back on other addresses behind the same name, one by one", () => {
  test("all runs go on, without a gap, and a gateway that starts afterwards finds it", async () => {
    const { stdout } = await run("unshare", ["-m", process.execPath, scenario], { timeout: 150_000 });
    const { heard, hasOld, detail } = JSON.parse(stdout) as {
      heard: { numbers: number[]; gaps: unknown[]; rollbacks: number; faults: string[] }[];
      hasOld: boolean;
      detail: string;
    };
    expect(hasOld).toBe(false);
    expect(detail).not.toContain("127.0.1.");
    for (const { numbers, gaps, faults } of heard) {
      expect(numbers).toEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(gaps).toEqual([]);
      expect(faults).toEqual([]);
    }
  }, 180_000);
});
