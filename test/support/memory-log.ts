/** A log that keeps its occurrences for a test to look at. */
import type { Log } from "../../gateway/supervisor/worker-handle.ts";

export interface LogEntry {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: object;
  readonly message: string;
}

export class MemoryLog implements Log {
  readonly entries: LogEntry[] = [];

  debug(fields: object, message: string): void {
    this.entries.push({ level: "debug", fields, message });
  }

  info(fields: object, message: string): void {
    this.entries.push({ level: "info", fields, message });
  }

  warn(fields: object, message: string): void {
    this.entries.push({ level: "warn", fields, message });
  }

  error(fields: object, message: string): void {
    this.entries.push({ level: "error", fields, message });
  }
}
