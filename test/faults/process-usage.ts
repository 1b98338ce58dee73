/** What a process uses, as the kernel counts it. */
import { readFile } from "node:fs/promises";

/** Ticks of the kernel's clock a second, as /proc reports them: 100 on every Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100;

/**
 * Begins to count; `cores` tells how many cores a process has kept busy since, on average, all its threads together. Without /proc, on
 * other systems than Linux, it tells 0.
 */
export async function startCpuMeter(pid: number): Promise<{ cores(): Promise<number> }> {
  if (process.platform !== "linux") return { cores: async () => 0 };
  const began = performance.now();
  const before = await cpuSeconds(pid);
  return { cores: async () => ((await cpuSeconds(pid)) - before) / ((performance.now() - began) / 1_000) };
}

/** Bytes of memory that are a process's own share (PSS): what sockets hold in the kernel is not among them. */
export async function memoryBytes(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const pss = /^Pss:\s+(\d+) kB$/m.exec(rollup);
  if (pss === null) throw new Error(`no Pss of process ${pid}`);
  return Number(pss[1]) * 1_024;
}

async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name, in parentheses, may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
