import { constants } from "node:os";
import type { Log } from "./worker-handle.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Resolves at the first SIGTERM or SIGINT. A second one exits at once with 128 and its number, as a shell counts it. */
export function untilSignal(log: Log, exit: (code: number) => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stopping = false;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (stopping) {
          log.warn({ signal }, "second signal: leaving at once");
          exit(128 + constants.signals[signal]);
        }
        stopping = true;
        resolve(signal);
      });
    }
  });
}
