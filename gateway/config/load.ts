/** Puts a configuration together: flag over environment over file over default. */
import type * as z from "zod";
import { configSchema, type GatewayConfig } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { readEnvironment } from "./environment.ts";
import { readConfigFile } from "./file.ts";
import type { Given } from "./given.ts";
import { quoted } from "./quoted.ts";
import { checkRules } from "./rules.ts";
import { listSettings, type Setting } from "./setting.ts";

export interface ConfigSources {
  /** Values of flags by the setting's name. */
  readonly flags: ReadonlyMap<string, unknown>;
  readonly env: NodeJS.ProcessEnv;
  /** A YAML or JSON file. */
  readonly file: string | null;
}

export interface LoadedConfig {
  readonly config: GatewayConfig;
  /** Where each setting that is not at its default came from. */
  readonly sources: ReadonlyMap<string, string>;
}

/** In the order of their declaration. */
export const SETTINGS: readonly Setting[] = listSettings(configSchema);

/** Throws ConfigError, one line a problem, each with the setting, its source and what to write. */
export function loadConfig({ flags, env, file }: ConfigSources): LoadedConfig {
  const fromFile = file === null ? { given: [], problems: [] } : readConfigFile(file, SETTINGS);
  const fromEnvironment = readEnvironment(SETTINGS, env);
  const given = new Map<string, Given>();
  for (const item of [...fromFile.given, ...fromEnvironment.given, ...fromFlags(flags)]) given.set(item.setting.name, item);

  const result = configSchema.safeParse(nest(given.values()));
  const problems = [...fromFile.problems, ...fromEnvironment.problems];
  if (!result.success) problems.push(...result.error.issues.map((issue) => explain(issue, given)));
  if (!result.success || problems.length > 0) throw new ConfigError([...new Set(problems)].join("\n"));

  const config: GatewayConfig = { ...result.data, adminHost: result.data.adminHost ?? result.data.host };
  const sources = new Map([...given].map(([name, item]) => [name, item.source]));
  const broken = checkRules(config, (name) => (sources.has(name) ? `${name} (from ${sources.get(name)})` : name));
  if (broken.length > 0) throw new ConfigError(broken.join("\n"));
  return { config, sources };
}

/** A copy to show: secrets are stars. */
export function withoutSecrets(config: GatewayConfig): GatewayConfig {
  const copy = structuredClone(config) as unknown as Record<string, unknown>;
  for (const setting of SETTINGS.filter(({ secret }) => secret)) {
    const parent = setting.path.slice(0, -1).reduce((node, key) => node[key] as Record<string, unknown>, copy);
    const key = setting.path.at(-1)!;
    if (parent[key] !== null) parent[key] = "***";
  }
  return copy as unknown as GatewayConfig;
}

function fromFlags(flags: ReadonlyMap<string, unknown>): Given[] {
  return SETTINGS.filter(({ name }) => flags.has(name)).map((setting) => ({
    setting,
    value: flags.get(setting.name),
    source: setting.flag ?? setting.name,
  }));
}

function nest(given: Iterable<Given>): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const { setting, value } of given) {
    let node = root;
    for (const key of setting.path.slice(0, -1)) {
      node[key] ??= {};
      node = node[key] as Record<string, unknown>;
    }
    node[setting.path.at(-1)!] = value;
  }
  return root;
}

function explain(issue: z.core.$ZodIssue, given: ReadonlyMap<string, Given>): string {
  const path = issue.path.map(String);
  const setting = SETTINGS.find((candidate) => candidate.path.every((part, index) => part === path[index]));
  if (setting === undefined) return `${path.join(".")}: ${issue.message}`;
  const item = given.get(setting.name);
  if (item === undefined) return `${setting.name} is missing; write ${setting.expects}`;
  const value = setting.secret ? "not usable" : quoted(item.value);
  return `${setting.name} (from ${item.source}) is ${value}; write ${setting.expects}`;
}
