/** Which test files need something, by their text and that of the helpers that they import. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Test files of the whole project, relative to `root`, in which one of `marks` stands, or in a file of test/ that one imports. */
export function filesWith(root: string, marks: readonly string[]): string[] {
  const files = globSync(["gateway/**/*.test.ts", "test/**/*.test.ts"], { cwd: root });
  return files.filter((file) => isMarked(root, file, marks, new Set()));
}

function isMarked(root: string, file: string, marks: readonly string[], seen: Set<string>): boolean {
  if (seen.has(file)) return false;
  seen.add(file);
  const text = readFileSync(join(root, file), "utf8");
  if (marks.some((mark) => text.includes(mark))) return true;
  const imported = [...text.matchAll(/(?:from|import) "(\.{1,2}\/[^"]+\.ts)"/g)].map((match) =>
    relative(root, join(root, dirname(file), match[1]!)),
  );
  return imported.some((one) => one.startsWith("test/") && isMarked(root, one, marks, seen));
}
