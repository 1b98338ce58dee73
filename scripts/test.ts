/**
 * `npm test`: brings what the tests need, checks types and style, runs the tests, and says what this machine could not run.
 *
 *     npm test                          everything but the soak
 *     npm test -- gateway/http          vitest's own arguments: only these files, without the checks
 *     npm run soak                      the long runs of test/soak
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { closingLine, notesOf, readReport } from "./test/summary.ts";
import { bringTools } from "./test/tools.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const given = process.argv.slice(2);
const soak = given.includes("--soak");
const handedOn = given.filter((argument) => argument !== "--soak");
const folder = mkdtempSync(join(tmpdir(), "penstock-test-"));
const notesFile = join(folder, "notes");
const reportFile = join(folder, "report.json");

// A Ctrl-C reaches what runs at the moment as well; that ends first, and then this.
let interrupted = false;
process.on("SIGINT", () => {
  interrupted = true;
});
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const missing = bringTools(root);
if (missing.length > 0 && process.env["CI"]) {
  for (const tool of missing) console.error(`penstock: ${tool.name} is missing: ${tool.wayOut}`);
  process.exit(1);
}

const failedChecks: string[] = [];
if (!soak && handedOn.length === 0) {
  if ((await run("tsc", ["--noEmit"])) !== 0) failedChecks.push("types (tsc --noEmit)");
  if ((await run("biome", ["check", "."])) !== 0) failedChecks.push("style (biome check)");
  // Ahead of the tests, which wait for them for minutes otherwise.
  if ((await run(process.execPath, ["test/support/python.ts"])) !== 0)
    failedChecks.push("Python environments (test/support/python.ts)");
}
const exclude = missing.flatMap((tool) => tool.files.flatMap((file) => ["--exclude", file]));
const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`];
const exitCode = await run("vitest", ["run", ...reporters, ...exclude, ...handedOn]);

const result = readReport(reportFile, failedChecks.length, exitCode);
const notes = [...notesOf(notesFile), ...missing.map((tool) => `${tool.name}: ${tool.files.length} test files. ${tool.wayOut}`)];
for (const check of failedChecks) console.log(`Failed: ${check}`);
if (notes.length > 0) console.log(`This machine could not run:\n${notes.map((note) => `  ${note}`).join("\n")}`);
console.log(closingLine(result));
process.exitCode = result.failed > 0 ? 1 : 0;

function run(command: string, args: string[]): Promise<number> {
  const env: NodeJS.ProcessEnv = { ...process.env, PENSTOCK_TEST_NOTES: notesFile };
  if (soak) env["PENSTOCK_SOAK"] = "1";
  const child = spawn(command, args, { cwd: root, stdio: "inherit", env });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => (interrupted ? process.exit(130) : resolve(code ?? 1)));
  });
}
