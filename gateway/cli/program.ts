/** `penstock`: one program, a command for each thing that a person does with it. */
import { Command, CommanderError } from "commander";
import { BrokerStartError, ConfigError, PenstockError } from "../errors.ts";
import { VERSION } from "../version.ts";
import { benchCommand } from "./bench-command.ts";
import { configCommand } from "./config-command.ts";
import { endCommand } from "./end-command.ts";
import { EXIT } from "./exit-codes.ts";
import { gatewayCommand } from "./gateway-command.ts";
import { publishCommand } from "./publish-command.ts";
import { tailCommand } from "./tail-command.ts";

/** Runs a command line (without program and script); resolves with the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  let code: number = EXIT.ok;
  const done = (result: number): void => {
    code = result;
  };
  const program = new Command("penstock")
    .description("Live event streams: publish by HTTP, read as Server-Sent Events, resume without loss.")
    .version(VERSION)
    .showHelpAfterError("(--help shows what there is)");
  for (const make of [gatewayCommand, publishCommand, tailCommand, endCommand, benchCommand, configCommand])
    program.addCommand(make(done));
  overrideExits(program);
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    return explain(error);
  }
}

/** Errors that a person can mend are one line on stderr; all others keep their stack. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof BrokerStartError) {
    // Begins the line with ZenML's own words, for which its operators look.
    process.stderr.write(`${error.message}\n`);
    return EXIT.failed;
  }
  if (!(error instanceof PenstockError)) throw error;
  for (const line of error.message.split("\n")) process.stderr.write(`penstock: ${line}\n`);
  return error instanceof ConfigError ? EXIT.usage : EXIT.failed;
}

function overrideExits(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) overrideExits(child);
}
