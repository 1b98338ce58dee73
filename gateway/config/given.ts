import type { Setting } from "./setting.ts";

/** A value that somebody gave a setting, and where. */
export interface Given {
  readonly setting: Setting;
  readonly value: unknown;
  /** For messages: `--port`, `PENSTOCK_PORT`, `gateway.yaml`. */
  readonly source: string;
}

/** What one source gives, and what in it cannot be used (a line each). */
export interface Layer {
  readonly given: readonly Given[];
  readonly problems: readonly string[];
}
