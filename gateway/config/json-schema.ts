import * as z from "zod";
import { configSchema } from "../config.ts";
import { settingOf } from "./setting.ts";

/** JSON Schema (2020-12) of a configuration file: for editors that complete and check it. */
export function jsonSchema(): object {
  const schema = z.toJSONSchema(configSchema, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema: made }) => {
      const declaration = settingOf(zodSchema);
      if (declaration === undefined) return;
      if (declaration.kind.json !== undefined) {
        for (const key of Object.keys(made)) delete (made as Record<string, unknown>)[key];
        Object.assign(made, declaration.kind.json);
      }
      made.description = declaration.about;
      if (declaration.default !== undefined)
        made.default = (
          declaration.kind.written === undefined ? declaration.default : declaration.kind.written(declaration.default)
        ) as never;
    },
  });
  return { ...schema, title: "Configuration of penstock gateway" };
}
