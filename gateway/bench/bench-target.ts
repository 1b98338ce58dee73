/** Which gateway the bench loads, and as whom. */
import { isIP } from "node:net";
import { z } from "zod";
import { connectionFailure } from "../cli/client/retry.ts";
import { ConfigError, PenstockError } from "../errors.ts";

export interface BenchTarget {
  /** Address with its path prefix, without a slash at the end. */
  readonly base: string;
  readonly secure: boolean;
  /** For a socket: an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isLoopback: boolean;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
}

const ANSWER_LIMIT_MS = 10_000;
const infoSchema = z.object({ penstock_version: z.string() });

/** Throws ConfigError where `base` is none of this machine and `remote` does not say that this is meant. `base` is an http:// or https:// URL. */
export function benchTarget(base: string, headers: BenchTarget["headers"], remote: boolean): BenchTarget {
  const url = new URL(base);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isLoopback = isLoopbackHost(host);
  if (!isLoopback && !remote) {
    throw new ConfigError(
      `${url.host} is not this machine. A bench is load; give --remote if the gateway there is yours and may be loaded.`,
    );
  }
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  return { base: base.replace(/\/+$/, ""), secure, host, port, isLoopback, headers };
}

/** Only what cannot be another machine: a name could be anything. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** Path on the server of something below a run. */
export function runPath(target: BenchTarget, runId: string, rest: string): string {
  const prefix = new URL(target.base).pathname.replace(/\/$/, "");
  return `${prefix}/api/v1/runs/${runId}${rest}`;
}

/** Asks the gateway who it is, before anything is loaded. Resolves with its version. Throws PenstockError. */
export async function greet(target: BenchTarget): Promise<string> {
  let response: Response;
  try {
    response = await fetch(`${target.base}/api/v1/info`, { signal: AbortSignal.timeout(ANSWER_LIMIT_MS) });
  } catch (error) {
    throw new PenstockError(
      "PENSTOCK_BENCH",
      `No gateway answers at ${target.base} (${connectionFailure(error)}); start one, such as: penstock gateway --broker memory`,
    );
  }
  const info = infoSchema.safeParse(await response.json().catch(() => null));
  if (!info.success)
    throw new PenstockError(
      "PENSTOCK_BENCH",
      `What answers at ${target.base} is no Penstock; correct the address, or its path prefix.`,
    );
  return info.data.penstock_version;
}
