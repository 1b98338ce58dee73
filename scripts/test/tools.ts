/** The programs that tests start: looked for, and installed where that is ours to do (Debian or Ubuntu, as root). */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { findBrowser } from "../../test/support/browser.ts";
import { filesWith } from "./test-files.ts";

interface Tool {
  readonly name: string;
  /** Debian's and Ubuntu's name of the package. */
  readonly packageName: string;
  readonly wayOut: string;
  /** A test file needs this tool when its text, or that of a helper that it imports, has one of these words. */
  readonly marks: readonly string[];
  found(): boolean;
}

export interface MissingTool {
  readonly name: string;
  /** What to do about it, one line. */
  readonly wayOut: string;
  /** The test files that cannot run without it, relative to the root. */
  readonly files: readonly string[];
}

const TOOLS: readonly Tool[] = [
  {
    name: "redis-server 7",
    packageName: "redis-server",
    wayOut: "Install Redis 7 or later (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis).",
    marks: ["redis-servers", "-scenario.ts"],
    found: () => Number(/v=(\d+)/.exec(outputOf("redis-server", ["--version"]))?.[1] ?? 0) >= 7,
  },
  {
    name: "Chromium",
    packageName: "chromium",
    wayOut: "Install Chromium or Chrome, or set CHROMIUM to its path (Debian: apt-get install chromium).",
    marks: ["support/browser"],
    found: () => findBrowser() !== null,
  },
  {
    name: "curl",
    packageName: "curl",
    wayOut: "Install curl.",
    marks: ['"curl"'],
    found: () => outputOf("curl", ["--version"]) !== "",
  },
  {
    name: "openssl",
    packageName: "openssl",
    wayOut: "Install openssl.",
    marks: ["support/certificates"],
    found: () => outputOf("openssl", ["version"]) !== "",
  },
  {
    name: "ip",
    packageName: "iproute2",
    wayOut: "Install iproute2 (Linux only: network namespaces).",
    marks: ["rollback-scenario.ts"],
    found: () => outputOf("ip", ["-V"]) !== "",
  },
  {
    name: "Python 3 with venv",
    packageName: "python3-venv",
    wayOut: "Install Python 3.10 or later with its venv module (Debian, Ubuntu: apt-get install python3-venv).",
    marks: ["support/python"],
    found: () => outputOf("python3", ["-c", "import venv, ensurepip; print(1)"]) !== "",
  },
];

/** Installs what is missing, where it may, and returns what still is. */
export function bringTools(root: string): MissingTool[] {
  const wanted = TOOLS.filter((tool) => !tool.found());
  if (wanted.length > 0 && mayInstall()) install(wanted.map((tool) => tool.packageName));
  return wanted
    .filter((tool) => !tool.found())
    .map((tool) => ({ name: tool.name, wayOut: tool.wayOut, files: filesWith(root, tool.marks) }));
}

function mayInstall(): boolean {
  return (
    process.platform === "linux" &&
    process.getuid?.() === 0 &&
    existsSync("/etc/debian_version") &&
    existsSync("/usr/bin/apt-get")
  );
}

function install(packages: string[]): void {
  console.error(`penstock: installing ${packages.join(", ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [["update"], ["install", "-y", "--no-install-recommends", ...packages]]) {
    const { status, stdout, stderr } = spawnSync("apt-get", ["-qq", ...args], { env, encoding: "utf8" });
    if (status !== 0) return void console.error(`penstock: apt-get ${args[0]} failed:\n${stdout}${stderr}`);
  }
}

function outputOf(command: string, args: string[]): string {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? stdout : "";
}
