/** Which gateway a client command speaks to, and as whom. */
import type { Command } from "commander";
import { ConfigError } from "../../errors.ts";

export interface Target {
  /** `https://gateway.example.org/prefix/api/v1/runs/<run>` */
  readonly runUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

const DEFAULT_URL = "http://127.0.0.1:8080";

export function addTargetOptions(command: Command): Command {
  return command
    .option("--url <url>", `address of the gateway, with its path prefix (or PENSTOCK_URL; default: ${DEFAULT_URL})`)
    .option("--token <token>", "bearer token (better: PENSTOCK_TOKEN, which no list of processes shows)");
}

/** Throws ConfigError for an address that is none. */
export function targetOf(command: Command, runId: string, env: NodeJS.ProcessEnv): Target {
  const { url, token } = command.opts<{ url?: string; token?: string }>();
  const base = gatewayAddress(url, "--url", env);
  return {
    runUrl: `${base.replace(/\/+$/, "")}/api/v1/runs/${encodeURIComponent(runId)}`,
    headers: bearerHeaders(token, env),
  };
}

/** The address that was given as `name`, else that of PENSTOCK_URL, else the default. Throws ConfigError. */
export function gatewayAddress(given: string | undefined, name: string, env: NodeJS.ProcessEnv): string {
  const base = given ?? (env["PENSTOCK_URL"] || DEFAULT_URL);
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    throw new ConfigError(
      `${given === undefined ? "PENSTOCK_URL" : name} is no http:// or https:// address; write one such as ${DEFAULT_URL}`,
    );
  }
  const { username, password } = new URL(base);
  if (username !== "" || password !== "")
    throw new ConfigError("The gateway's address holds a user name or a password, which it does not take; give a token instead.");
  return base;
}

export function bearerHeaders(token: string | undefined, env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const bearer = token ?? env["PENSTOCK_TOKEN"];
  return bearer === undefined || bearer === "" ? {} : { authorization: `Bearer ${bearer}` };
}
