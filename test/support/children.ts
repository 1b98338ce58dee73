/** Child processes that never outlive the test process that started them. */
import type { ChildProcess } from "node:child_process";

const running = new Map<ChildProcess, () => void>();

/** Ends `child` with SIGKILL when this process ends first; `after` runs when the child is gone, either way. */
export function endWithUs(child: ChildProcess, after: () => void = () => {}): void {
  running.set(child, after);
  child.once("exit", () => {
    running.delete(child);
    after();
  });
}

function endAll(): void {
  for (const [child, after] of running) {
    child.kill("SIGKILL");
    after();
  }
  running.clear();
}

process.once("exit", endAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    endAll();
    process.kill(process.pid, signal);
  });
}
