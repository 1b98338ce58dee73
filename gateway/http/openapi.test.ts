import { expect, test } from "vitest";
import { openApiDocument } from "./openapi.ts";
import { ALLOW, createRouter } from "./routes.ts";

const document = openApiDocument({ pathPrefix: "", version: "1.2.3" });

test("every reference leads somewhere", () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1]!.split("/"));
  expect(references.length).toBeGreaterThan(20);
  for (const path of references) {
    let at: unknown = document;
    for (const part of path) at = (at as Record<string, unknown>)[part];
    expect(at, path.join("/")).toBeTypeOf("object");
  }
});

test("it describes the methods of every route, and no others", () => {
  const paths = document["paths"] as Record<string, object>;
  const route = createRouter("");
  const described = Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      route(path.replace("{runId}", "r"))!.route,
      Object.keys(operations)
        .filter((name) => name !== "parameters")
        .map((name) => name.toUpperCase())
        .sort(),
    ]),
  );
  const served = Object.entries(ALLOW).map(([name, allow]) => [
    name,
    allow
      .split(", ")
      .filter((method) => method === "GET" || method === "POST")
      .sort(),
  ]);
  expect(described).toEqual(Object.fromEntries(served));
});

test("operation ids are unique", () => {
  const ids = [...JSON.stringify(document).matchAll(/"operationId":"([^"]+)"/g)].map((match) => match[1]);
  expect(new Set(ids).size).toBe(ids.length);
});
