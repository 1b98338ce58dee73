/** The gateway's log: one JSON line an occurrence on stdout, or text for people. */
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import type { GatewayConfig } from "../config.ts";
import { LogOutput } from "./log-output.ts";
import { prettyLine } from "./pretty-line.ts";

/** Nothing of these names is logged, should it ever be handed over. */
const SECRET_FIELDS = ["authorization", "cookie", "token", "password", "secret", "payload", "url.password"];

export interface LogOptions {
  /** Fields of every line. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** For tests. */
  readonly to?: DestinationStream;
}

export function createLog({ level, format }: GatewayConfig["log"], { fields, to }: LogOptions = {}): Logger {
  const output = new LogOutput(STDOUT, format === "pretty" ? prettyLine : asItIs);
  const log = pino(
    {
      level,
      base: fields ?? null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRET_FIELDS,
    },
    to ?? output,
  );
  output.lost = (lines) => log.warn({ lines }, "lines of this log were lost: stdout did not take them");
  return log;
}

const STDOUT = 1;

function asItIs(line: string): string {
  return line;
}
