/** The control groups that this process lives in: its own, and those around it as far as they can be seen (Linux, v2 and v1). */
import { readFileSync } from "node:fs";
import os from "node:os";

/** Content of a file, null where there is none. */
export type ReadFile = (file: string) => string | null;

export interface GroupUse {
  readonly limitBytes: number;
  /** What cannot be given back without harm: all that is charged, less file pages that nobody has used lately. */
  readonly usedBytes: number;
}

export class MemoryGroups {
  readonly #read: ReadFile;
  readonly #folders: readonly Folder[];
  readonly #machineBytes: number;

  constructor(read: ReadFile = readFile, machineBytes: number = os.totalmem()) {
    this.#read = read;
    this.#machineBytes = machineBytes;
    this.#folders = groupFolders(read, "memory").map(({ path, version }) => ({ path, names: version === 1 ? V1 : V2 }));
  }

  /** The least limit of all; null when none has one below the machine's memory. Asked each time: a limit may be changed while we run. */
  get leastLimitBytes(): number | null {
    const limits = this.#folders.map((folder) => this.#limitOf(folder)).filter((limit) => limit !== null);
    return limits.length === 0 ? null : Math.min(...limits);
  }

  /** The group that is nearest to its limit; null when none has one. */
  get fullest(): GroupUse | null {
    let fullest: GroupUse | null = null;
    for (const folder of this.#folders) {
      const limitBytes = this.#limitOf(folder);
      const usedBytes = limitBytes === null ? null : this.#usedBy(folder);
      if (limitBytes === null || usedBytes === null) continue;
      if (fullest === null || usedBytes / limitBytes > fullest.usedBytes / fullest.limitBytes)
        fullest = { limitBytes, usedBytes };
    }
    return fullest;
  }

  #limitOf({ path, names }: Folder): number | null {
    // `max`, or v1's number near 2^63, both mean no limit.
    const limit = this.#number(`${path}/${names.limit}`);
    return limit !== null && limit > 0 && limit < this.#machineBytes ? limit : null;
  }

  #usedBy({ path, names }: Folder): number | null {
    const charged = this.#number(`${path}/${names.usage}`);
    if (charged === null) return null;
    const idleFiles = new RegExp(`^${names.idleFiles} (\\d+)$`, "m").exec(this.#read(`${path}/memory.stat`) ?? "");
    return Math.max(0, charged - Number(idleFiles?.[1] ?? 0));
  }

  #number(file: string): number | null {
    const text = this.#read(file)?.trim() ?? "";
    return /^\d+$/.test(text) ? Number(text) : null;
  }
}

interface Folder {
  readonly path: string;
  readonly names: typeof V1 | typeof V2;
}

const V1 = { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", idleFiles: "total_inactive_file" } as const;
const V2 = { limit: "memory.max", usage: "memory.current", idleFiles: "inactive_file" } as const;

/** Where a controller's files of a group are. */
export interface GroupFolder {
  readonly path: string;
  readonly version: 1 | 2;
}

/** From the process's own group up to the root of what is mounted. */
export function groupFolders(read: ReadFile, controller: "memory" | "cpu"): GroupFolder[] {
  const groups = read("/proc/self/cgroup") ?? "";
  // Where the controller is v1's, v2 may be mounted beside it, without this one.
  const v1 = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, "m").exec(groups);
  const own = (v1 ?? /^0::(.*)$/m.exec(groups))?.[1];
  const mount = findMount(read("/proc/self/mountinfo") ?? "", v1 === null ? null : controller);
  if (own === undefined || mount === null) return [];
  // A container may see its group mounted as the root, and yet be told the path that the host knows.
  let path = mount.root === "/" ? own : own.startsWith(`${mount.root}/`) ? own.slice(mount.root.length) : "";
  // Outside of what our namespace shows.
  if (path.includes("/..")) path = "";
  const folders: GroupFolder[] = [];
  for (path = path.replace(/\/+$/, ""); ; path = path.slice(0, path.lastIndexOf("/"))) {
    folders.push({ path: mount.point + path, version: v1 === null ? 2 : 1 });
    if (path === "") return folders;
  }
}

/** Of v1's hierarchy with this controller, or of v2 for null. */
function findMount(mountinfo: string, controller: string | null): { readonly root: string; readonly point: string } | null {
  for (const line of mountinfo.split("\n")) {
    // proc(5): id, parent, device, root, mount point, options, optional fields, "-", type, source, options of the file system.
    const [place = "", system = ""] = line.split(" - ");
    const [, , , root, point] = place.split(" ");
    const [type, , options = ""] = system.split(" ");
    const fits = controller === null ? type === "cgroup2" : type === "cgroup" && options.split(",").includes(controller);
    if (fits && root !== undefined && point !== undefined) return { root, point };
  }
  return null;
}

/** Null for a file that is not there: not this kind of control group, or not Linux. */
export function readFile(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
