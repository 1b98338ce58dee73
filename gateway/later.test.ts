import { describe, expect, test } from "vitest";
import { later } from "./later.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("later", () => {
  test("is not now, and keeps the order", async () => {
    const done: string[] = [];
    const note = (what: string) => done.push(what);
    later(note, "first");
    later(note, "second");
    expect(done).toEqual([]);
    await turn();
    expect(done).toEqual(["first", "second"]);
  });

  test("is behind all microtasks: those still run inside a callback of the engine", async () => {
    const done: string[] = [];
    later((what: string) => done.push(what), "later");
    await Promise.resolve().then(() => done.push("microtask"));
    await turn();
    expect(done).toEqual(["microtask", "later"]);
  });

  test("what the work asks for is done in the same turn of the loop, behind what is there", async () => {
    const done: string[] = [];
    const note = (what: string) => done.push(what);
    later(() => {
      note("first");
      setImmediate(note, "next turn");
      later(note, "asked for by the first");
    }, undefined);
    later(note, "second");
    await turn();
    expect(done).toEqual(["first", "second", "asked for by the first"]);
    await turn();
    expect(done.at(-1)).toBe("next turn");
  });

  test("work that throws takes nothing else along", async () => {
    const done: string[] = [];
    const note = (what: string) => done.push(what);
    const listeners = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    const thrown = new Promise((resolve) => process.once("uncaughtException", resolve));
    later(() => {
      throw new Error("a fault");
    }, undefined);
    later(note, "behind it");
    expect(await thrown).toEqual(new Error("a fault"));
    for (const listener of listeners) process.on("uncaughtException", listener);
    await turn();
    await turn();
    expect(done).toEqual(["behind it"]);
    later(note, "and goes on");
    await turn();
    expect(done).toEqual(["behind it", "and goes on"]);
  });
});
