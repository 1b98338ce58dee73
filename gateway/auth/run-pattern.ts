import { parseRunId } from "../../protocol/run-id.ts";

/** Tells whether a canonical run id matches one of `patterns`: whole ids, in any spelling of a UUID, or with `*` for any characters. */
export function runMatcher(patterns: readonly string[]): (runId: string) => boolean {
  const ids = new Set<string>();
  const shapes: RegExp[] = [];
  for (const pattern of patterns) {
    if (!pattern.includes("*")) ids.add(parseRunId(pattern, "any") ?? pattern);
    else if (/^\*+$/.test(pattern)) return () => true;
    else shapes.push(new RegExp(`^${pattern.split("*").map(literally).join(".*")}$`));
  }
  return (runId) => ids.has(runId) || shapes.some((shape) => shape.test(runId));
}

function literally(text: string): string {
  return text.replace(/[\\^$.|?+()[\]{}]/g, "\\$&");
}
