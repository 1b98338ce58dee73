import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = globSync(["*.md", "docs/**/*.md", "examples/**/*.md"], { cwd: root });

describe("links between the project's pages", () => {
  it.each(pages)("%s links only to files that are there", (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!.replace(/#.*$/, ""));
    const missing = targets.filter(
      (target) => target !== "" && !/^[a-z]+:/.test(target) && !existsSync(join(root, dirname(page), target)),
    );
    expect(missing).toEqual([]);
  });
});
