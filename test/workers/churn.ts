/** Readers that come and go for long, on runs that come and go: does memory stay level? */
import { setTimeout as pause } from "node:timers/promises";
import { batch } from "../faults/producer.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { heapAfterCollection, INSPECTOR_ENV } from "../support/heap.ts";
import { LightReaders } from "../support/light-readers.ts";
import { childrenOf } from "../support/processes.ts";
import { startRedis } from "../support/redis-servers.ts";

const READERS = 2_000;
const RUNS = 200;
/** 20 % of all readers a minute. */
const CUTS_PER_SECOND = (READERS * 0.2) / 60;
const PUBLISHES_PER_SECOND = 10;
/** One run in ten ends after so long, and its readers go to the next. */
const SHORT_RUN_SECONDS = 40;
const STEP_MS = 100;
const SAMPLE_MS = 5_000;

export interface Churn {
  /** Over the last third, begin and end of a line through it: the workers' heaps after a collection, and what all processes have resident. */
  readonly heap: Level;
  readonly resident: Level;
  readonly opened: number;
  readonly refused: number;
  readonly events: number;
}

export interface Level {
  readonly begin: number;
  readonly end: number;
}

export async function churn(seconds: number): Promise<Churn> {
  const redis = await startRedis();
  // Rings that are full after a minute: what they gather until then is no leak.
  const flags = ["--workers", "2", "--idle-grace-seconds", "5", "--ring-events", "16"];
  const gateway = await startGateway({ broker: "redis", redisUrl: redis.url, flags, env: INSPECTOR_ENV });
  const began = performance.now();
  const runOf = (n: number): string => {
    const run = n % RUNS;
    if (run % 10 !== 0) return `churn-${run}`;
    return `churn-${run}-${Math.floor(((performance.now() - began) / 1_000 + run) / SHORT_RUN_SECONDS)}`;
  };
  const clients = new LightReaders({ port: gateway.port, pathOf: (n) => `/api/v1/runs/${runOf(n)}/events/stream` });
  try {
    await clients.open(READERS);
    const heap: number[] = [];
    const resident: number[] = [];
    const work = keepBusy(gateway, clients, runOf, seconds);
    while (performance.now() - began < seconds * 1_000) {
      const metrics = await gateway.metrics();
      let used = 0;
      for (const worker of childrenOf(gateway.pid)) used += await heapAfterCollection(worker, () => gateway.logs());
      heap.push(used);
      resident.push(metrics.get("process_resident_memory_bytes")!);
      await pause(SAMPLE_MS);
    }
    await work;
    const { opened, refused, events } = clients;
    return { heap: level(lastThird(heap)), resident: level(lastThird(resident)), opened, refused, events };
  } finally {
    clients.close();
    await gateway.stop();
    await redis.stop();
  }
}

/** By how much a level has risen; 0.01 is one percent. */
export function rise({ begin, end }: Level): number {
  return end / begin - 1;
}

async function keepBusy(gateway: Gateway, clients: LightReaders, runOf: (n: number) => string, seconds: number): Promise<void> {
  let due = 0;
  let published = 0;
  const lastRuns = Array.from({ length: RUNS }, (_, n) => runOf(n));
  const began = performance.now();
  for (let at = 0; at < seconds * 1_000; at = performance.now() - began) {
    for (; due < (at / 1_000) * CUTS_PER_SECOND; due++) clients.cut(Math.floor(Math.random() * clients.size));
    const publishes: Promise<unknown>[] = [];
    for (; published < (at / 1_000) * PUBLISHES_PER_SECOND; published++)
      publishes.push(gateway.publish(runOf(published % RUNS), batch(published, 5, { padding: 200 })));
    for (const [n, last] of lastRuns.entries()) {
      if (runOf(n) === last) continue;
      lastRuns[n] = runOf(n);
      publishes.push(fetch(gateway.runUrl(last, "/end"), { method: "POST" }));
    }
    await Promise.all(publishes);
    await pause(STEP_MS);
  }
}

function lastThird(samples: readonly number[]): readonly number[] {
  return samples.slice(Math.floor((samples.length * 2) / 3));
}

/** The line of least squares through the samples, at its two ends. */
function level(samples: readonly number[]): Level {
  const middle = (samples.length - 1) / 2;
  const mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
  let above = 0;
  let below = 0;
  for (const [index, sample] of samples.entries()) {
    above += (index - middle) * (sample - mean);
    below += (index - middle) ** 2;
  }
  const slope = above / below;
  return { begin: mean - slope * middle, end: mean + slope * middle };
}
