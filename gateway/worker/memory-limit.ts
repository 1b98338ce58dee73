import os from "node:os";
import { MemoryGroups } from "../overload/control-group.ts";

/** Bytes of memory that this process may use together with all others of its control group: the least limit there, or the machine's memory. */
export function memoryLimitBytes(): number {
  return new MemoryGroups().leastLimitBytes ?? os.totalmem();
}
