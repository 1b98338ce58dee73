import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";

const scripts = fileURLToPath(new URL("..", import.meta.url));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "penstock-with-node-")));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a script in a folder that is not the project's. */
function start(script: string, args: string[], env: NodeJS.ProcessEnv = {}) {
  return spawnSync(script, args, { cwd: folder, encoding: "utf8", env: { ...process.env, ...env } });
}

describe("scripts/with-node", () => {
  it("runs a command where it was called, with its arguments as they are, and passes its exit code on", () => {
    const print = "console.log(JSON.stringify([process.cwd(), ...process.argv.slice(1)])); process.exitCode = 7";
    const { status, stdout } = start(join(scripts, "with-node"), ["node", "-e", print, "a  b", "", "$HOME"]);
    expect(JSON.parse(stdout)).toEqual([folder, "a  b", "", "$HOME"]);
    expect(status).toBe(7);
  });

  it("says nothing itself when nothing is to do", () => {
    expect(start(join(scripts, "with-node"), ["node", "-e", ""])).toMatchObject({ status: 0, stdout: "", stderr: "" });
  });

  it("brings the project's own tools", () => {
    expect(start(join(scripts, "with-node"), ["tsc", "--version"]).stdout).toMatch(/^Version 7/);
  });

  it("says how it is used when it has no command", () => {
    const { status, stderr } = start(join(scripts, "with-node"), []);
    expect([status, stderr]).toEqual([2, "usage: scripts/with-node COMMAND [ARGUMENT…]\n"]);
  });

  it("says what to do when there is no place for the Node.js that it would bring", () => {
    // An empty PATH but for the shell's tools: no Node.js is found, whatever this machine has.
    const tools = join(folder, "tools");
    mkdirSync(tools);
    for (const tool of ["bash", "env", "dirname", "readlink", "uname", "cat", "cmp", "mkdir"]) {
      const path = spawnSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).stdout.trim();
      symlinkSync(path, join(tools, tool));
    }
    const { status, stderr } = start(join(scripts, "with-node"), ["node"], { PATH: tools, XDG_CACHE_HOME: "/dev/null" });
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^penstock: cannot write to \/dev\/null\/penstock; set XDG_CACHE_HOME to a folder that can be written$/m,
    );
  });
});

describe("scripts/penstock", () => {
  it("finds the project through a link, as npx makes one", () => {
    const link = join(folder, "penstock");
    symlinkSync(join(scripts, "penstock"), link);
    const version = JSON.parse(readFileSync(join(scripts, "../package.json"), "utf8")).version;
    expect(start(link, ["--version"])).toMatchObject({ status: 0, stdout: `${version}\n` });
  });
});
