import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SETTINGS } from "./config/load.ts";
import { ERRORS } from "./error-catalogue.ts";

const ROOT = new URL("../", import.meta.url);
/** Of the command line, not settings and not errors. */
const OTHER_VARIABLES = ["PENSTOCK_URL", "PENSTOCK_TOKEN"];

const sources = ["gateway", "protocol"].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts") && !name.endsWith("error-catalogue.ts"))
    .map((name) => readFileSync(new URL(`${folder}/${name}`, ROOT), "utf8")),
);

describe("the list of errors", () => {
  it("has every code that the program uses, and no other", () => {
    const variables = new Set([...SETTINGS.map(({ variable }) => variable), ...OTHER_VARIABLES]);
    const used = sources.flatMap((source) => [...source.matchAll(/"(PENSTOCK_[A-Z_]+)"/g)].map((match) => match[1]!));
    expect(Object.keys(ERRORS).sort()).toEqual([...new Set(used)].filter((code) => !variables.has(code)).sort());
  });

  it("has the status with which each is answered", () => {
    const thrown = sources.flatMap((source) => [...source.matchAll(/RequestError\(\s*"(PENSTOCK_[A-Z_]+)",\s*(\d{3})/g)]);
    expect(thrown.length).toBeGreaterThan(5);
    for (const [, code, status] of thrown) expect(`${code} ${ERRORS[code!]?.status}`).toBe(`${code} ${status}`);
  });
});
