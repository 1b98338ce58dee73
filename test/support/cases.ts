/** The cases of `test/cases`: their bytes, sent as they are, and their Redis commands. */
import { readFileSync } from "node:fs";
import type { Gateway, GatewayOptions } from "./gateway.ts";
import { DEPLOYMENT_ID, startGateway } from "./gateway.ts";
import { fillTemplate, type Piece, RawConnection, type TemplateValues } from "./raw-http.ts";
import { type RedisServer, startRedis } from "./redis-servers.ts";

/** The run that the cases' bodies name. */
export const CASE_RUN = "11111111-2222-4333-8444-555555555555";

/** A gateway on one of the two brokers, and what it has stored. */
export interface Stage {
  readonly gateway: Gateway;
  /** Null with the memory broker. */
  readonly redis: RedisServer | null;
  /** How many entries the broker keeps of a run. */
  entryCount(runId: string): Promise<number>;
  stop(): Promise<void>;
}

export async function startStage(broker: "memory" | "redis", options: GatewayOptions = {}): Promise<Stage> {
  const redis = broker === "redis" ? await startRedis() : null;
  const gateway = await startGateway({ broker, ...(redis ? { redisUrl: redis.url } : {}), ...options }).catch(
    async (error: unknown) => {
      await redis?.stop();
      throw error;
    },
  );
  return {
    gateway,
    redis,
    entryCount: async (runId) => {
      if (redis !== null) return Number(await redis.cli("XLEN", streamKey(runId)));
      const answer = await fetch(gateway.runUrl(runId, "/events?limit=1000"));
      return ((await answer.json()) as { events: unknown[] }).events.length;
    },
    stop: async () => {
      await gateway.stop();
      await redis?.stop();
    },
  };
}

/** The Redis key of a run. */
export function streamKey(runId: string, deploymentId = DEPLOYMENT_ID): string {
  return `zenml:stream:server:${deploymentId}:run:${runId}`;
}

export function caseBytes(path: string): Buffer {
  return readFileSync(new URL(`../cases/${path}`, import.meta.url));
}

/** A `.http` file of a case, ready to send. */
export function casePieces(path: string, values: TemplateValues = {}): Piece[] {
  return fillTemplate(caseBytes(path), values);
}

/** Sends a `.http` file on a connection of its own. */
export async function sendCase(gateway: Gateway, path: string, values: TemplateValues = {}): Promise<RawConnection> {
  const connection = await RawConnection.open(gateway.port);
  await connection.send(casePieces(path, values));
  return connection;
}

/** Sends a `.http` file and gives the status of its one answer. */
export async function statusOf(gateway: Gateway, path: string, values: TemplateValues = {}): Promise<number> {
  const connection = await sendCase(gateway, path, values);
  const { status } = await connection.response();
  connection.close();
  return status;
}

/** The n-th entry of a case, as a broker keeps it. */
export function entryOf(runId: string, n: number): string {
  const event = { pipeline_run_id: runId, step_run_id: null, step_name: null, kind: "token", correlation_id: null, index: n };
  return JSON.stringify({ type: "event", event: { ...event, payload: { text: `t${n}` } } });
}

/** Runs the commands of a `.redis` file. */
export async function seedRedis(redis: RedisServer, path: string, runId: string): Promise<void> {
  for (const line of caseBytes(path).toString("utf8").split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const words = line.split(" ").map((word) =>
      word
        .replace("{{KEY}}", streamKey(runId))
        .replace("{{END_ENTRY}}", '{"type":"end"}')
        .replace(/\{\{ENTRY(\d+)\}\}/, (_, n: string) => entryOf(runId, Number(n))),
    );
    await redis.cli(...words);
  }
}
