/** docs/errors.md, out of gateway/error-catalogue.ts. */
import { ERRORS, type ErrorEntry } from "../../gateway/error-catalogue.ts";

const INTRODUCTION = `# Errors

<!-- Made by scripts/docs.ts from gateway/error-catalogue.ts; edit that. -->

Every error has a stable code. An answer over HTTP has the body \`{"detail": "…"}\`: one line for a person, without a stack, a path or an echo of the input. A 401 carries
\`WWW-Authenticate\`, a 503 \`Retry-After\`.
`;

export function errorsPage(): string {
  const entries = Object.entries(ERRORS);
  const http = entries.filter(([, { status }]) => status !== null);
  const local = entries.filter(([, { status }]) => status === null);
  return [
    INTRODUCTION,
    "## Answers of the gateway\n\n| code | status | meaning | way out |\n|---|---|---|---|",
    ...http.map(([code, entry]) => `| \`${code}\` | ${entry.status} | ${cells(entry)} |`),
    "\n## On the terminal\n\n| code | meaning | way out |\n|---|---|---|",
    ...local.map(([code, entry]) => `| \`${code}\` | ${cells(entry)} |`),
    "",
  ].join("\n");
}

function cells({ meaning, wayOut }: ErrorEntry): string {
  return `${meaning} | ${wayOut}`;
}
