import { Command } from "commander";
import { createAuthenticator } from "../auth/create.ts";
import { jsonSchema } from "../config/json-schema.ts";
import { SETTINGS, withoutSecrets } from "../config/load.ts";
import type { Log } from "../supervisor/worker-handle.ts";
import { redisOptions } from "../worker/redis-options.ts";
import { EXIT, exitCodesHelp } from "./exit-codes.ts";
import { addSettingFlags, configOf } from "./setting-flags.ts";

export function configCommand(done: (code: number) => void): Command {
  const command = new Command("config").description("Look at the configuration.");
  return command.addCommand(checkCommand(done)).addCommand(schemaCommand(done));
}

function checkCommand(done: (code: number) => void): Command {
  const command = new Command("check")
    .description("Check the configuration that `gateway` would get from the same flags, variables and file. Connects to nothing.")
    .option("--json", "print the whole configuration as JSON, secrets as stars")
    .addHelpText("after", exitCodesHelp("the configuration can be used", "unexpected failure"));
  return addSettingFlags(command).action(() => {
    const { config, sources } = configOf(command, process.env);
    createAuthenticator(config.auth, QUIET).close();
    if (config.broker === "redis") redisOptions(config.redis);
    const shown = withoutSecrets(config);
    if (command.getOptionValue("json") === true) process.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
    else {
      for (const { name, path } of SETTINGS.filter((setting) => sources.has(setting.name))) {
        const value = path.reduce<unknown>((node, key) => (node as Record<string, unknown>)[key], shown);
        process.stdout.write(`${name} = ${JSON.stringify(value)}  (from ${sources.get(name)})\n`);
      }
      process.stdout.write("The configuration can be used.\n");
    }
    done(EXIT.ok);
  });
}

function schemaCommand(done: (code: number) => void): Command {
  return new Command("schema")
    .description("Print the JSON Schema of the configuration file, for editors.")
    .addHelpText("after", exitCodesHelp("printed", "unexpected failure"))
    .action(() => {
      process.stdout.write(`${JSON.stringify(jsonSchema(), null, 2)}\n`);
      done(EXIT.ok);
    });
}

const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
