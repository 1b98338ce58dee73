/** How connections spread over workers, and how they come to a worker that was started again. */
import { expect } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { LightReaders } from "../support/light-readers.ts";
import { childrenOf } from "../support/processes.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";

const WORKERS = 4;

export interface Spread {
  /** Streams of each worker, at first, right after one was killed and all are back, and when the others' streams have aged. */
  readonly first: readonly number[];
  readonly afterKill: readonly number[];
  readonly afterAge: readonly number[];
}

/** `readers` on four workers whose streams live `ageSeconds`, 20 % more or less. */
export async function spread(readers: number, ageSeconds: number): Promise<Spread> {
  const redis = await startRedis();
  const flags = [
    "--workers",
    String(WORKERS),
    "--max-subscribers-per-stream",
    "100000",
    "--max-age-minutes",
    String(ageSeconds / 60),
  ];
  const gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags });
  const pathOf = (n: number): string => `/api/v1/runs/spread-${n % 100}/events/stream`;
  // Back before a worker that was killed is up again; and few are on their way at any time.
  const clients = new LightReaders({ port: gateway.port, pathOf, backWithinMs: 200 });
  try {
    return await measure({ redis, gateway, clients }, readers, ageSeconds);
  } finally {
    clients.close();
    await gateway.stop();
    await redis.stop();
  }
}

interface Parts {
  readonly redis: RedisServer;
  readonly gateway: Gateway;
  readonly clients: LightReaders;
}

async function measure({ gateway, clients }: Parts, readers: number, ageSeconds: number): Promise<Spread> {
  const counts = async (): Promise<number[]> => {
    const metrics = await gateway.metrics();
    return Array.from({ length: WORKERS }, (_, worker) => metrics.get(`penstock_worker_connections{worker="${worker}"}`) ?? 0);
  };
  const allThere = (): Promise<number> =>
    gateway.waitForMetric("penstock_connections", (connections) => connections > readers * 0.95, ageSeconds * 2_000);
  await clients.open(readers, 120_000);
  const first = await counts();
  const [victim] = childrenOf(gateway.pid);
  process.kill(victim!, "SIGKILL");
  await gateway.waitForMetric("penstock_worker_restarts_total", (restarts) => restarts === 1);
  await allThere();
  const afterKill = await counts();
  // Every stream has come to its end by then, at 1.2 times the age.
  const aged = 'penstock_connections_closed_total{reason="age"}';
  const before = (await gateway.metrics()).get(aged)!;
  await gateway.waitForMetric(aged, (closed) => closed - before >= 1.5 * readers, ageSeconds * 4_000);
  await allThere();
  expect(clients.refused).toBe(0);
  return { first, afterKill, afterAge: await counts() };
}

/** How much more the fullest worker has than the emptiest. */
export function ratio(counts: readonly number[]): number {
  return Math.max(...counts) / Math.min(...counts);
}
