import { describe, expect, it } from "vitest";
import { EVERYTHING, makeFilter } from "./filter.ts";

const token = { kind: "token", stepName: "generate", correlationId: "g1" };
const log = { kind: "log", stepName: null, correlationId: null };

describe("a filter", () => {
  it("without values lets everything through, and is shared", () => {
    expect(makeFilter([], [], [])).toBe(EVERYTHING);
    expect(EVERYTHING.matches(log)).toBe(true);
  });

  it("is OR within a field and AND across fields", () => {
    expect(makeFilter(["token", "log"], [], []).matches(log)).toBe(true);
    expect(makeFilter(["token"], ["generate"], ["g1"]).matches(token)).toBe(true);
    expect(makeFilter(["token"], ["retrieve"], []).matches(token)).toBe(false);
  });

  it("on a field never matches an event without that field", () => {
    expect(makeFilter([], ["null"], []).matches(log)).toBe(false);
    expect(makeFilter([], [], [""]).matches(log)).toBe(false);
  });

  it("compares exactly: no commas split, no case folded, no name of Object's prototype known", () => {
    expect(makeFilter(["token,log"], [], []).matches(token)).toBe(false);
    expect(makeFilter(["Token"], [], []).matches(token)).toBe(false);
    expect(makeFilter(["constructor"], [], []).matches(token)).toBe(false);
  });

  it("has the same key as an equal one, and another than any different one", () => {
    expect(makeFilter(["a", "b"], [], ["c"]).key).toBe(makeFilter(["b", "a", "a"], [], ["c"]).key);
    expect(makeFilter(["a"], [], []).key).not.toBe(makeFilter([], ["a"], []).key);
    expect(makeFilter(['a","b'], [], []).key).not.toBe(makeFilter(["a", "b"], [], []).key);
  });
});
