/**
 * Python environments for the tests that use foreign clients, ZenML's producer and ZenML's server. Made once, in the user's cache.
 * `node test/support/python.ts` makes them all ahead of a test run.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const INSTALL_LIMIT_MS = 15 * 60_000;

/** The clients that `test/clients` drives: requests, httpx, httpx-sse, sseclient-py. Null without a Python of 3.10 or later. */
export function clientPython(): Promise<string | null> {
  return ensurePython("clients", ["requests==2.34.2", "httpx==0.28.1", "httpx-sse==0.4.3", "sseclient-py==1.9.0"]);
}

/** httpx-sse 0.4.1, the last one that splits lines at U+2028. */
export function oldHttpxSsePython(): Promise<string | null> {
  return ensurePython("httpx-sse-0.4.1", ["httpx==0.28.1", "httpx-sse==0.4.1"]);
}

/** ZenML's own producer. */
export function producerPython(): Promise<string | null> {
  return ensurePython("zenml", ["zenml==0.98.0"]);
}

/** A whole ZenML server. Null where `findServerPython` finds none. */
export async function serverPython(): Promise<string | null> {
  const python = await findServerPython();
  return python === null ? null : ensurePython("zenml-server", ["zenml[server]==0.98.0", "redis>=7.1,<8"], python);
}

/**
 * The Python for ZenML's server: 3.12 alone, since its streams hang on 3.11. `$PYTHON312`, else python3.12 on the path, else one of
 * pyenv's. Null, and a note, where there is none.
 */
export async function findServerPython(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  const candidates = [env["PYTHON312"] ?? "", "python3.12", ...(await pyenvPythons("3.12.", env))];
  const python = await firstOf(candidates, (version) => version.startsWith("3.12."), env);
  if (python === null) note("ZenML's server beside the gateway: needs Python 3.12 (set PYTHON312 to its path)", env);
  return python;
}

/** Says at the end of `npm test` what this machine could not run. */
export function note(line: string, env: NodeJS.ProcessEnv = process.env): void {
  const file = env["PENSTOCK_TEST_NOTES"];
  if (file !== undefined && file !== "") appendFileSync(file, `${line}\n`);
}

/**
 * Path of a Python that has the requirements installed; makes the environment when it is not there. Processes that ask at the same time wait for one.
 * Null, and a note, when no Python of 3.10 or later is found. Throws when the installation fails.
 */
export async function ensurePython(name: string, requirements: readonly string[], base?: string): Promise<string | null> {
  const python = base ?? (await findPython());
  if (python === null) {
    note(`tests with Python's ${name}: no python3 of 3.10 or later found`);
    return null;
  }
  const version = await versionOf(python);
  const hash = createHash("sha256")
    .update([python, version, ...requirements].join("\n"))
    .digest("hex");
  const folder = join(cacheFolder(), `venv-${name}-${hash.slice(0, 12)}`);
  const executable = join(folder, "bin", "python");
  const stamp = join(folder, "complete");
  if (existsSync(stamp)) return executable;
  const unlock = await lock(`${folder}.lock`);
  try {
    if (existsSync(stamp)) return executable;
    await rm(folder, { recursive: true, force: true });
    await install(python, folder, executable, requirements);
    await writeFile(stamp, `${requirements.join("\n")}\n`);
    return executable;
  } finally {
    await unlock();
  }
}

function cacheFolder(): string {
  return join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "penstock");
}

async function install(python: string, folder: string, executable: string, requirements: readonly string[]): Promise<void> {
  const options = { timeout: INSTALL_LIMIT_MS, maxBuffer: 16 * 1024 * 1024 };
  try {
    await run(python, ["-m", "venv", folder], options);
  } catch (error) {
    throw new Error(`${python} cannot make a virtual environment (on Debian: apt-get install python3-venv)`, { cause: error });
  }
  await run(executable, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...requirements], options);
}

let foundPython: Promise<string | null> | undefined;

function findPython(): Promise<string | null> {
  foundPython ??= firstOf(["python3", "python3.13", "python3.12", "python3.11", "python3.10"], (version) => {
    const [major = 0, minor = 0] = version.split(".").map(Number);
    return major === 3 && minor >= 10;
  });
  return foundPython;
}

async function pyenvPythons(prefix: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const versions = join(env["PYENV_ROOT"] || join(env["HOME"] || homedir(), ".pyenv"), "versions");
  const names = existsSync(versions) ? await readdir(versions) : [];
  return names.filter((name) => name.startsWith(prefix)).map((name) => join(versions, name, "bin", "python3"));
}

async function firstOf(
  candidates: readonly string[],
  fits: (version: string) => boolean,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string | null> {
  for (const candidate of candidates) {
    if (candidate === "") continue;
    // A candidate that cannot be run is no Python of ours; that it may be missing is why there are several.
    const version = await versionOf(candidate, env).catch(() => "");
    if (fits(version)) return candidate;
  }
  return null;
}

async function versionOf(python: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const { stdout } = await run(python, ["-c", "import platform; print(platform.python_version())"], { env });
  return stdout.trim();
}

/** A folder is made by one process only; the file in it names the owner, so that a dead one does not block for ever. */
async function lock(folder: string): Promise<() => Promise<void>> {
  await mkdir(cacheFolder(), { recursive: true });
  const owner = join(folder, "pid");
  const deadline = Date.now() + INSTALL_LIMIT_MS;
  for (;;) {
    try {
      await mkdir(folder);
      await writeFile(owner, String(process.pid));
      return () => rm(folder, { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (await isAbandoned(folder, owner)) await rm(folder, { recursive: true, force: true });
    else if (Date.now() > deadline) throw new Error(`${folder} is held by another process; remove it if that process is gone`);
    else await delay(500);
  }
}

async function isAbandoned(folder: string, owner: string): Promise<boolean> {
  const pid = Number(await readFile(owner, "utf8").catch(() => ""));
  if (pid > 0) return !isAlive(pid);
  const made = await stat(folder).catch(() => null);
  return made !== null && Date.now() - made.mtimeMs > 10_000;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const make of [clientPython, oldHttpxSsePython, producerPython, serverPython]) console.log(await make());
}
