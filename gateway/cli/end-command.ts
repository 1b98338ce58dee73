import { Command } from "commander";
import { post } from "./client/post.ts";
import { addTargetOptions, targetOf } from "./client/target.ts";
import { EXIT, exitCodesHelp } from "./exit-codes.ts";
import { secondsOption } from "./number-option.ts";

export function endCommand(done: (code: number) => void): Command {
  const command = new Command("end")
    .description("End a run: its readers hear `end`. Ending it again changes nothing.")
    .argument("<run>", "run id")
    .addOption(secondsOption("--retry-seconds <s>", "how long to try while the gateway is away", 60))
    .addHelpText("after", exitCodesHelp("the run is ended", "the gateway refused, or stayed away"));
  return addTargetOptions(command).action(async (runId: string, { retrySeconds }: { retrySeconds: number }) => {
    const answer = await post({
      target: targetOf(command, runId, process.env),
      path: "/end",
      body: null,
      retrySeconds,
      notice: (message) => process.stderr.write(`penstock: ${message}\n`),
    });
    process.stdout.write(`${JSON.stringify(answer)}\n`);
    done(EXIT.ok);
  });
}
