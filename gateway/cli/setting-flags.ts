/** Flags for settings, made from their declarations. */
import { type Command, Option } from "commander";
import { type LoadedConfig, loadConfig, SETTINGS } from "../config/load.ts";

/** Adds `--config` and a flag for each setting that has one. */
export function addSettingFlags(command: Command): Command {
  command.option("-c, --config <file>", "YAML or JSON file with settings (or PENSTOCK_CONFIG)");
  for (const setting of SETTINGS) {
    if (setting.flag === null) continue;
    const value = setting.boolean ? " [boolean]" : ` <${setting.flag.slice(setting.flag.lastIndexOf("-") + 1)}>`;
    const preset =
      setting.default === null || setting.boolean || `${setting.default}` === ""
        ? ""
        : ` (default: ${setting.written(setting.default)})`;
    command.addOption(new Option(setting.flag + value, setting.about + preset));
  }
  return command;
}

/** The configuration that a command's flags, the environment and the file give. Throws ConfigError. */
export function configOf(command: Command, env: NodeJS.ProcessEnv): LoadedConfig {
  const flags = new Map<string, unknown>();
  for (const setting of SETTINGS) {
    const option = command.options.find(({ long }) => long === setting.flag);
    if (option === undefined || setting.flag === null) continue;
    const value: unknown = command.getOptionValue(option.attributeName());
    if (value !== undefined) flags.set(setting.name, value);
  }
  const file = (command.getOptionValue("config") as string | undefined) ?? env["PENSTOCK_CONFIG"];
  return loadConfig({ flags, env, file: file === undefined || file === "" ? null : file });
}
