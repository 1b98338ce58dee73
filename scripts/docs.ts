/**
 * Writes the pages that are made from the code: docs/configuration.md, errors.md, metrics.md, openapi.json.
 *
 *   node scripts/docs.ts          writes them
 *   node scripts/docs.ts --check  compares: exit code 1 and their names when one differs
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openApiDocument } from "../gateway/http/openapi.ts";
import { VERSION } from "../gateway/version.ts";
import { configurationPage } from "./docs/configuration-page.ts";
import { errorsPage } from "./docs/errors-page.ts";
import { metricsPage } from "./docs/metrics-page.ts";

/** Path from the root, and content. */
export function pages(): ReadonlyMap<string, string> {
  return new Map([
    ["docs/configuration.md", configurationPage()],
    ["docs/errors.md", errorsPage()],
    ["docs/metrics.md", metricsPage()],
    ["docs/openapi.json", `${JSON.stringify(openApiDocument({ pathPrefix: "", version: VERSION }), null, 2)}\n`],
  ]);
}

/** Paths whose file is not what the code says. */
export function stalePages(): string[] {
  return [...pages()].filter(([path, content]) => read(path) !== content).map(([path]) => path);
}

function place(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}

function read(path: string): string | null {
  try {
    return readFileSync(place(path), "utf8");
  } catch {
    return null;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const stale = stalePages();
  if (!process.argv.includes("--check")) {
    for (const path of stale) writeFileSync(place(path), pages().get(path)!);
    process.stdout.write(stale.length === 0 ? "Every page was up to date.\n" : `Written: ${stale.join(", ")}\n`);
  } else if (stale.length > 0) {
    process.stderr.write(`Not what the code says: ${stale.join(", ")}. Run: npm run docs\n`);
    process.exitCode = 1;
  }
}
