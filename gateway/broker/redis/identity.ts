/** Who answers on a connection. */
import type { Connection } from "./connection.ts";
import { ReplyError } from "./resp.ts";

/**
 * What changes when another history stands behind the same connection: the process and the chain of replication. Empty where INFO is
 * refused. Throws when it is a replica, if it must be a master.
 */
export async function readIdentity(connection: Connection, mustBeMaster: boolean): Promise<string> {
  let identity = "";
  for (const section of ["server", "replication"]) {
    const info = await connection.call("INFO", section).catch((error: unknown) => {
      if (error instanceof ReplyError) return "";
      throw error;
    });
    const text = String(info);
    if (mustBeMaster && /^role:slave/m.test(text)) throw new Error("it is a replica");
    for (const field of ["run_id", "master_replid", "role"]) {
      identity += `${new RegExp(`^${field}:(\\S+)`, "m").exec(text)?.[1] ?? ""} `;
    }
  }
  return identity.trim();
}
