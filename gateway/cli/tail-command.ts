import { once } from "node:events";
import { Command } from "commander";
import colors from "picocolors";
import { parseEventId } from "../../protocol/event-id.ts";
import { ConfigError } from "../errors.ts";
import { follow } from "./client/follow.ts";
import { humanLine, jsonLine } from "./client/show-frame.ts";
import { addTargetOptions, targetOf } from "./client/target.ts";
import { EXIT, exitCodesHelp } from "./exit-codes.ts";
import { secondsOption, wholeNumberOption } from "./number-option.ts";

interface TailOptions {
  readonly json?: true;
  readonly since?: string;
  readonly tail?: number;
  readonly kind: readonly string[];
  readonly stepName: readonly string[];
  readonly correlationId: readonly string[];
  readonly retrySeconds?: number;
}

export function tailCommand(done: (code: number) => void): Command {
  const command = new Command("tail")
    .description("Print the events of a run as they come, until it ends. Reconnects, goes on where it was, and shows every gap.")
    .argument("<run>", "run id")
    .option("--json", 'print {"id", "event", "data"} a line')
    .option("--since <id>", "start behind this id (`<ms>-<seq>`)")
    .addOption(
      wholeNumberOption("--tail <n>", "start at the last n events; 0: new ones only", 0, Number.MAX_SAFE_INTEGER).conflicts(
        "since",
      ),
    )
    .option("--kind <kind>", "only events of this kind (repeatable)", collect, [])
    .option("--step-name <name>", "only events of this step (repeatable)", collect, [])
    .option("--correlation-id <id>", "only events with this correlation id (repeatable)", collect, [])
    .addOption(secondsOption("--retry-seconds <s>", "give up after so long without a connection (default: never)"))
    .addHelpText("after", exitCodesHelp("the run has ended", "the gateway refused, or stayed away"));
  return addTargetOptions(command).action(async (runId: string, options: TailOptions) => {
    // `penstock tail … | head` is no failure.
    process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? EXIT.ok : EXIT.failed));
    await follow({
      target: targetOf(command, runId, process.env),
      query: queryOf(options),
      retrySeconds: options.retrySeconds ?? null,
      show: (frame) => print(options.json === true ? jsonLine(frame) : humanLine(frame, colors)),
      notice: (message) => process.stderr.write(`penstock: ${message}\n`),
    });
    done(EXIT.ok);
  });
}

function queryOf(options: TailOptions): URLSearchParams {
  const query = new URLSearchParams();
  if (options.since !== undefined) {
    if (parseEventId(options.since) === null) throw new ConfigError("--since is no id; write one such as 1700000000000-0");
    query.set("since", options.since);
  }
  if (options.tail !== undefined) query.set("tail", String(options.tail));
  for (const kind of options.kind) query.append("kinds", kind);
  for (const name of options.stepName) query.append("step_names", name);
  for (const id of options.correlationId) query.append("correlation_ids", id);
  return query;
}

async function print(line: string | null): Promise<void> {
  if (line === null || process.stdout.write(`${line}\n`)) return;
  await once(process.stdout, "drain");
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}
