import { describe, expect, it } from "vitest";
import { stalePages } from "./docs.ts";

describe("the pages made from the code", () => {
  it("say what the code says (npm run docs writes them)", () => {
    expect(stalePages()).toEqual([]);
  });
});
