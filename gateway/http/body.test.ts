/** What bodies may cost, however they come and whoever leaves. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { Body } from "./body.ts";
import { ByteBudget } from "./byte-budget.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const MIB = 1024 * 1024;

function bytesOf(text: string): ArrayBuffer {
  return new Uint8Array(Buffer.from(text)).buffer;
}

describe("a body", () => {
  test("is what came, however it was cut", async () => {
    const text = Array.from({ length: 30_000 }, (_, n) => n).join(" ");
    for (const step of [1, 7, 1_000, text.length]) {
      const body = new Body(new ByteBudget(MIB), MIB);
      for (let at = 0; at < text.length; at += step) body.push(bytesOf(text.slice(at, at + step)), at + step >= text.length);
      body.settle();
      expect((await body.read()).toString()).toBe(text);
    }
  });

  test("that comes byte by byte costs no more than twice what it holds", () => {
    const budget = new ByteBudget(16 * MIB);
    const body = new Body(budget, 16 * MIB);
    const byte = bytesOf(" ");
    collectGarbage();
    const before = memory();
    for (let n = 0; n < MIB; n++) body.push(byte, false);
    collectGarbage();
    expect(budget.usedBytes).toBeLessThanOrEqual(2 * MIB);
    expect(memory() - before).toBeLessThan(4 * MIB);
    expect(body.receivedBytes).toBe(MIB);
  });

  test("counts against the budget until its reader needs it no more, though its client has left", async () => {
    const budget = new ByteBudget(100);
    const body = new Body(budget, 100);
    body.push(bytesOf("x".repeat(80)), true);
    body.settle();
    expect((await body.read()).length).toBe(80);
    body.discard();
    expect(budget.usedBytes).toBe(80);
    body.release();
    expect(budget.usedBytes).toBe(0);
    body.release();
    expect(budget.usedBytes).toBe(0);
  });

  test("is there at once when all of it has come and may be told, and else has to be waited for", async () => {
    const body = new Body(new ByteBudget(100), 100);
    body.push(bytesOf("a"), false);
    expect(body.isDecided).toBe(false);
    body.push(bytesOf("b"), true);
    expect(body.isDecided).toBe(true);
    expect(body.readNow()).toBeNull();
    body.settle();
    expect(body.readNow()?.toString()).toBe("ab");

    const tooLarge = new Body(new ByteBudget(100), 1);
    tooLarge.push(bytesOf("ab"), false);
    expect(tooLarge.isDecided).toBe(true);
    tooLarge.settle();
    expect(tooLarge.readNow()).toBeNull();
    await expect(tooLarge.read()).rejects.toThrow(expect.objectContaining({ status: 413 }));
  });

  test("that nobody has read is given back when its client leaves", () => {
    const budget = new ByteBudget(100);
    const body = new Body(budget, 100);
    body.push(bytesOf("x".repeat(40)), false);
    expect(budget.usedBytes).toBe(40);
    body.discard();
    body.push(bytesOf("x".repeat(40)), true);
    expect(budget.usedBytes).toBe(0);
  });

  test("that is too much for itself or for the budget holds nothing, and says why", async () => {
    const budget = new ByteBudget(100);
    for (const [most, status] of [
      [50, 413],
      [500, 503],
    ] as const) {
      const body = new Body(budget, most);
      body.push(bytesOf("x".repeat(40)), false);
      expect(body.push(bytesOf("x".repeat(80)), true)).toBe(true);
      body.settle();
      await expect(body.read()).rejects.toMatchObject({ status });
      expect(budget.usedBytes).toBe(0);
    }
  });
});

function memory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
