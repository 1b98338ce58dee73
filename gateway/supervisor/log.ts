/** The gateway's log: one JSON line an occurrence on stdout, or text for people. */
import { Writable } from "node:stream";
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from "pino";
import type { GatewayConfig } from "../config.ts";
import { prettyLine } from "./pretty-line.ts";

/** Nothing of these names is logged, should it ever be handed over. */
const SECRET_FIELDS = ["authorization", "cookie", "token", "password", "secret", "payload", "url.password"];

/** Written without waiting: a reader of stdout that stops must not stop the event loop. `to` is for tests. */
export function createLog(config: GatewayConfig["log"], to?: DestinationStream): Logger {
  const sink = to ?? (config.format === "json" ? destination({ dest: 1, sync: false }) : pretty());
  return pino(
    {
      level: config.level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: SECRET_FIELDS,
    },
    sink,
  );
}

function pretty(): Writable {
  return new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      process.stdout.write(prettyLine(String(line)));
      done();
    },
  });
}
