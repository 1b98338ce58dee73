/** What every route of a run asks before anything else, in this order: 401, 501, 422, 403. */

import { parseRunId, type RunIdMode } from "../../protocol/run-id.ts";
import type { Action, Authenticator, Identity } from "../auth/authenticator.ts";
import type { Broker } from "../broker/broker.ts";
import { RequestError } from "../errors.ts";
import type { Exchange } from "./exchange.ts";
import { fieldOf } from "./request-head.ts";

/** A request to a run by a caller who may make it. */
export interface RunCall {
  readonly exchange: Exchange;
  readonly runId: string;
  readonly identity: Identity;
  readonly broker: Broker;
}

export interface Doorkeeper {
  readonly authenticator: Authenticator;
  /** Null when none is configured. */
  readonly broker: Broker | null;
  readonly runIds: RunIdMode;
}

/** Throws, or rejects with, RequestError. A promise only where the authenticator needs one: most streams open without. */
export function enterRun(door: Doorkeeper, exchange: Exchange, rawRunId: string, action: Action): RunCall | Promise<RunCall> {
  const { head } = exchange;
  const identity = door.authenticator.authenticate({
    authorization: fieldOf(head, "authorization"),
    cookie: fieldOf(head, "cookie"),
    origin: fieldOf(head, "origin"),
  });
  if (!(identity instanceof Promise)) return admit(door, exchange, rawRunId, action, identity);
  exchange.pauseBody();
  return identity.then((known) => {
    exchange.resumeBody();
    return admit(door, exchange, rawRunId, action, known);
  });
}

function admit(door: Doorkeeper, exchange: Exchange, rawRunId: string, action: Action, identity: Identity): RunCall {
  if (door.broker === null)
    throw new RequestError(
      "PENSTOCK_NO_BROKER",
      501,
      "Live event streaming is not enabled on this server: no broker is configured.",
    );
  const runId = parseRunId(decoded(rawRunId), door.runIds);
  if (runId === null) throw new RequestError("PENSTOCK_BAD_RUN_ID", 422, RUN_ID_FAULT[door.runIds]);
  if (!identity.can(action, runId))
    throw new RequestError(
      "PENSTOCK_FORBIDDEN",
      403,
      `The caller may not ${action === "read" ? "read" : "publish to"} this run.`,
    );
  return { exchange, runId, identity, broker: door.broker };
}

const RUN_ID_FAULT: Readonly<Record<RunIdMode, string>> = {
  any: "The run id must be a UUID or 1 to 128 letters, digits, '.', '_' and '-'.",
  uuid: "The run id must be a UUID.",
};

/** A name with a broken escape is no run's name. */
function decoded(rawRunId: string): string {
  if (!rawRunId.includes("%")) return rawRunId;
  try {
    return decodeURIComponent(rawRunId);
  } catch {
    return "";
  }
}
