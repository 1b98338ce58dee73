import { setFlagsFromString } from "node:v8";
import { Command } from "commander";
import type { GatewayConfig } from "../config.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import { dieLoudly } from "../supervisor/die-loudly.ts";
import { Fleet } from "../supervisor/fleet.ts";
import { workerRange } from "../supervisor/fleet-size.ts";
import { createLog } from "../supervisor/log.ts";
import { machine } from "../supervisor/machine.ts";
import { untilSignal } from "../supervisor/signals.ts";
import { Supervisor } from "../supervisor/supervisor.ts";
import { YOUNG_GENERATION_FLAG } from "../supervisor/v8-flags.ts";
import type { Log, WorkerHandle } from "../supervisor/worker-handle.ts";
import { EXIT, exitCodesHelp } from "./exit-codes.ts";
import { addSettingFlags, configOf } from "./setting-flags.ts";

export function gatewayCommand(done: (code: number) => void): Command {
  const command = new Command("gateway")
    .description("Serve event streams: publish, read, resume.")
    .addHelpText("after", exitCodesHelp("stopped by SIGTERM or SIGINT, after the drain", "it could not start, or broke"))
    .addHelpText(
      "after",
      "\nEvery setting, with its variables: docs/configuration.md. A second signal leaves at once, with 128 and its number.",
    );
  return addSettingFlags(command).action(async () => done(await serve(command)));
}

async function serve(command: Command): Promise<number> {
  const { config } = configOf(command, process.env);
  setFlagsFromString(YOUNG_GENERATION_FLAG);
  const log = createLog(config.log);
  // At once, though something may hold the event loop: a connection kept alive, a timer of a broker module.
  const leave = (code: number): void => {
    log.flush((stuck) => {
      // A thread is still writing to a reader that takes nothing, and `exit` would wait for it.
      if (stuck) process.kill(process.pid, "SIGKILL");
      process.exit(code);
    });
  };
  dieLoudly(log, leave);
  const signal = untilSignal(log, leave);

  const metrics = createMetrics();
  const supervisor = new Supervisor({ config, worker: await workersOf(config, metrics, log), metrics, log });
  const started = supervisor.start();
  // A signal while the broker is being probed: nothing is served yet, so there is nothing to drain.
  const stoppedEarly = await Promise.race([started.then(() => false), signal.then(() => true)]);
  if (stoppedEarly) {
    started.catch(() => {});
    await supervisor.close();
    leave(EXIT.ok);
    return EXIT.ok;
  }
  const addresses = await started;
  log.info({ ...addresses, host: config.host, broker: config.broker, auth: config.auth.mode, pid: process.pid }, "listening");
  warnAbout(config, log);

  log.info({ signal: await signal }, "signal");
  await supervisor.drain();
  leave(EXIT.ok);
  return EXIT.ok;
}

/** One worker lives in this process; more are processes of their own. */
async function workersOf(config: GatewayConfig, metrics: Metrics, log: Log): Promise<WorkerHandle> {
  // A broker in memory is one process' own, and without a broker there is nothing to share: `auto` is one there.
  const single = config.broker === "memory" || config.broker === null;
  const range = workerRange(single ? { min: 1, max: 1 } : config.workers, machine(config.overload.memoryLimitBytes));
  if (range.max > 1) {
    log.info(range, "workers");
    return new Fleet(config, range, metrics, log);
  }
  const { Worker } = await import("../worker/worker.ts");
  return new Worker(config, { metrics, log });
}

function warnAbout(config: ReturnType<typeof configOf>["config"], log: Log): void {
  if (config.broker === null)
    log.warn({}, "no broker is configured: streams and publishes are answered 501; choose one with --broker");
  if (config.auth.mode === "none" && config.auth.insecure)
    log.warn({ host: config.host }, "everybody who reaches this address may read and publish");
  if (config.auth.mode === "jwt" && config.auth.jwt.audience === null) {
    log.warn({}, "auth.jwt.audience is not set: tokens that the issuer made for others count here too");
  }
}
