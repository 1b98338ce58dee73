/** Settings out of a file: YAML, or JSON, which YAML 1.2 contains. */
import { readFileSync } from "node:fs";
import { LineCounter, parseDocument } from "yaml";
import { ConfigError } from "../errors.ts";
import type { Given, Layer } from "./given.ts";
import { didYouMean } from "./nearest.ts";
import type { Setting } from "./setting.ts";

/** Throws ConfigError when the file cannot be read or is not YAML; the message never quotes it, for it may hold a password. */
export function readConfigFile(path: string, settings: readonly Setting[]): Layer {
  const given: Given[] = [];
  const problems: string[] = [];
  const byName = new Map(settings.map((setting) => [setting.name, setting]));
  const groups = new Set(
    settings.flatMap((setting) => setting.path.slice(0, -1).map((_, i) => setting.path.slice(0, i + 1).join("."))),
  );

  const visit = (node: unknown, prefix: string): void => {
    if (node === null || node === undefined) return;
    if (typeof node !== "object" || Array.isArray(node)) {
      const what = prefix === "" ? "the file" : prefix;
      const first = settings.find((setting) => setting.name.startsWith(prefix === "" ? "" : `${prefix}.`))!;
      problems.push(`${what} (from ${path}) is a group of settings; write them below it, such as ${first.name}`);
      return;
    }
    for (const [key, value] of Object.entries(node)) {
      const name = prefix === "" ? key : `${prefix}.${key}`;
      const setting = byName.get(name);
      if (setting !== undefined) {
        if (value !== null) given.push({ setting, value, source: path });
      } else if (groups.has(name)) visit(value, name);
      else
        problems.push(
          `${name} (from ${path}) is no setting${didYouMean(name, [...byName.keys(), ...groups])}; remove it or correct its name`,
        );
    }
  };
  visit(parse(path), "");
  return { given, problems };
}

function parse(path: string): unknown {
  let source: string;
  try {
    source = readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(
      `The configuration file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}); check --config.`,
    );
  }
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { prettyErrors: false, lineCounter });
  const error = document.errors[0];
  if (error !== undefined) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    throw new ConfigError(
      `The configuration file ${path} is neither YAML nor JSON: ${error.code} in line ${line}, column ${col}.`,
    );
  }
  return document.toJS();
}
