import { describe, expect, test } from "vitest";
import { withDeadline } from "./deadline.ts";

const late = () => new Error("late");
const never = () => new Promise<never>(() => {});

describe("withDeadline", () => {
  test("gives what the promise gives, and what it fails with", async () => {
    await expect(withDeadline(Promise.resolve(1), 1_000, late)).resolves.toBe(1);
    await expect(withDeadline(Promise.reject(new Error("lost")), 1_000, late)).rejects.toThrow("lost");
  });

  test("is not kept up by a promise that never settles, each by its own time", async () => {
    const begun = performance.now();
    const ends: string[] = [];
    const endsBy = (name: string, milliseconds: number) =>
      withDeadline(never(), milliseconds, late).catch((error: Error) => {
        expect(performance.now() - begun).toBeGreaterThanOrEqual(milliseconds);
        ends.push(`${name} ${error.message}`);
      });
    await Promise.all([endsBy("long", 300), endsBy("short", 20), endsBy("at once", 0)]);
    expect(ends.toSorted()).toEqual(["at once late", "long late", "short late"]);
    expect(ends.at(-1)).toBe("long late");
  });

  test("one that was answered is not called late", async () => {
    let calls = 0;
    const count = () => {
      calls++;
      return late();
    };
    await withDeadline(Promise.resolve(), 10, count);
    await expect(withDeadline(never(), 100, late)).rejects.toThrow("late");
    expect(calls).toBe(0);
  });
});
