/** The broker that the configuration names: embedded, Redis, or a module of the user's own. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Broker, BrokerContext, BrokerLog, BrokerMetrics } from "../broker/broker.ts";
import { createMemoryBroker } from "../broker/memory.ts";
import type { GatewayConfig } from "../config.ts";
import { BrokerStartError } from "../errors.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { redisOptions } from "./redis-options.ts";

/** Entries with which a watch begins: a wave of readers that were cut lately is served from memory. */
const TAIL_ENTRIES = 256;

/** Null when none is configured. Throws ConfigError or BrokerStartError. Nothing is connected yet. */
export async function openBroker(config: GatewayConfig, metrics: Metrics, log: BrokerLog): Promise<Broker | null> {
  const context: BrokerContext = {
    deploymentId: config.deploymentId,
    tailEntries: Math.min(TAIL_ENTRIES, config.flow.ring.events),
    log,
    metrics: brokerMetrics(metrics),
  };
  if (config.broker === null) return null;
  if (config.broker === "memory") return createMemoryBroker(config.memory, context);
  if (config.broker === "redis") {
    // Not loaded where it is not used: a laptop's demo starts faster.
    const { createRedisBroker } = await import("../broker/redis.ts");
    return createRedisBroker(redisOptions(config.redis), context);
  }
  return openModule(config.broker, context);
}

async function openModule(name: string, context: BrokerContext): Promise<Broker> {
  const url = pathToFileURL(path.resolve(name)).href;
  let module: { createBroker?: (context: BrokerContext) => Broker | Promise<Broker> };
  try {
    module = await import(url);
  } catch (error) {
    throw new BrokerStartError(`the module that --broker names cannot be loaded: ${(error as Error).message}`, { cause: error });
  }
  if (typeof module.createBroker !== "function") {
    throw new BrokerStartError("the module that --broker names does not export createBroker(context).");
  }
  return module.createBroker(context);
}

function brokerMetrics(metrics: Metrics): BrokerMetrics {
  return {
    redisConnected: (role, connected) => metrics.set("penstock_redis_connected", connected, role),
    redisReconnect: (role) => metrics.inc("penstock_redis_reconnects_total", role),
    redisError: (type) => metrics.inc("penstock_redis_errors_total", type),
    redisReads: (count) => metrics.inc("penstock_redis_reads_total", undefined, count),
    readMode(mode) {
      for (const other of ["tracking", "blocking", "polling"] as const) {
        metrics.set("penstock_redis_read_mode", other === mode ? 1 : 0, other);
      }
    },
    duplicateDropped: (count) => metrics.inc("penstock_duplicate_entries_total", undefined, count),
  };
}
