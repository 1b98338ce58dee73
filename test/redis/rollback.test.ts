import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { Gap } from "../../gateway/broker/broker.ts";

const run = promisify(execFile);
const scenario = fileURLToPath(new URL("rollback-scenario.ts", import.meta.url));

interface Heard {
  gaps: { gap: Gap; newest: string }[];
  numbers: number[];
  ids: string[];
  faults: string[];
  calls: string[];
  kept: string;
  heard: string;
  pageGap: Gap | null;
}

async function play(...args: string[]): Promise<Heard> {
  const { stdout } = await run("unshare", ["-n", process.execPath, scenario, ...args], { timeout: 90_000 });
  return JSON.parse(stdout) as Heard;
}

const canUnshare = await run("unshare", ["-n", "true"]).then(
  () => true,
  () => false,
);

// Needs the right to make a network namespace (root on Linux): without one the link to a replica cannot be cut.
describe.skipIf(!canUnshare)("a failover that lost acknowledged entries", () => {
  test("each reader hears of one rollback, and goes on behind what is left", async () => {
    const { gaps, numbers, ids, faults, heard } = await play();
    expect(gaps).toHaveLength(1);
    expect(gaps[0]!.gap).toEqual({ reason: "rollback", from: heard, to: expect.anything(), missed: null });
    expect(numbers.slice(0, 30)).toEqual(Array.from({ length: 30 }, (_, number) => number));
    expect(new Set(numbers.slice(30))).toEqual(new Set([200]));
    expect(faults).toEqual([]);
    expect(gaps[0]!.gap.to).toBe(ids[30]);
  }, 120_000);

  test("entries that the new master was given around the lost position all come, behind the same one gap", async () => {
    const { gaps, numbers, faults, heard, ids, pageGap } = await play("others");
    expect(gaps).toHaveLength(1);
    expect(gaps[0]!.gap).toEqual({ reason: "rollback", from: heard, to: ids[30], missed: null });
    expect(numbers.slice(30, 36)).toEqual([100, 101, 102, 103, 104, 105]);
    expect(faults).toEqual([]);
    expect(pageGap).toMatchObject({ reason: "rollback", from: heard });
  }, 120_000);
});
