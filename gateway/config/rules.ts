/** What no setting can say alone: settings that need or exclude each other. */
import type { GatewayConfig } from "../config.ts";
import { writtenWorkers } from "./kinds.ts";
import { didYouMean } from "./nearest.ts";
import { quoted } from "./quoted.ts";

/** A line for each broken rule. `named` gives a setting's name with its source. */
export function checkRules(config: GatewayConfig, named: (setting: string) => string): string[] {
  return [...brokerRules(config, named), ...redisRules(config, named), ...authRules(config, named), ...portRules(config, named)];
}

/** True for an address that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** True for what `broker` may be besides `memory` and `redis`. */
export function isModulePath(broker: string): boolean {
  return /^\.{0,2}\//.test(broker) || /\.(js|mjs|ts|mts)$/.test(broker);
}

function* brokerRules(config: GatewayConfig, named: (setting: string) => string): Generator<string> {
  const { broker, workers } = config;
  // `auto` is 1 there.
  if (broker === "memory" && ((workers.min !== "auto" && workers.min > 1) || (workers.max !== "auto" && workers.max > 1))) {
    yield `${named("workers")} is ${writtenWorkers(workers)}, but the memory broker lives in one process; write 1, or choose the broker redis`;
  }
  if (broker !== null && broker !== "memory" && broker !== "redis" && !isModulePath(broker)) {
    const meant = didYouMean(broker, ["memory", "redis"]);
    yield `${named("broker")} is ${quoted(broker)}${meant}; write memory, redis, or the path of a module such as ./my-broker.ts`;
  }
}

function* redisRules(config: GatewayConfig, named: (setting: string) => string): Generator<string> {
  const { redis } = config;
  if (redis.nodes.length > 0 && redis.sentinel !== null)
    yield `${named("redis.nodes")} and redis.sentinel exclude each other; keep one`;
  for (const name of ["username", "password"] as const) {
    if (redis[name] !== null && redis[`${name}File`] !== null) {
      yield `${named(`redis.${name}`)} and ${named(`redis.${name}File`)} exclude each other; keep one`;
    }
  }
  if ((redis.tls.certFile === null) !== (redis.tls.keyFile === null)) {
    yield `redis.tls.certFile and redis.tls.keyFile belong together; ${redis.tls.certFile === null ? "certFile" : "keyFile"} is missing`;
  }
  if (config.broker !== "redis") return;
  if (redis.url === null && redis.nodes.length === 0 && redis.sentinel === null) {
    yield "broker is redis, but no setting says where it is; set ZENML_REDIS_BROKER_URL or PENSTOCK_REDIS_URL, or redis.url, redis.nodes or redis.sentinel in the file";
  }
  if (config.deploymentId === null) {
    yield "broker is redis, but deploymentId is missing; give --deployment-id (beside a ZenML server: the id of its /api/v1/info)";
  }
}

function* authRules(config: GatewayConfig, named: (setting: string) => string): Generator<string> {
  const { auth } = config;
  if (auth.mode === "none" && !auth.insecure && !isLoopback(config.host)) {
    yield `${named("host")} is ${config.host}, which others can reach, but auth.mode is none; choose --auth static or jwt, or say --insecure`;
  }
  if (auth.mode === "static" && auth.static.tokensFile === null) {
    yield `${named("auth.mode")} is static, but auth.static.tokensFile is missing; give --tokens-file`;
  }
  if (auth.mode !== "jwt") return;
  if ((auth.jwt.jwksUrl === null) === (auth.jwt.keyFile === null)) {
    yield `${named("auth.mode")} is jwt; give exactly one of auth.jwt.jwksUrl and auth.jwt.keyFile`;
  }
  const shared = auth.jwt.algorithms.filter((algorithm) => algorithm.startsWith("HS"));
  if (shared.length > 0 && (shared.length < auth.jwt.algorithms.length || auth.jwt.jwksUrl !== null)) {
    yield `${named("auth.jwt.algorithms")} has ${shared.join(", ")}, which need a shared secret in auth.jwt.keyFile and no others beside; remove them`;
  }
}

function* portRules(config: GatewayConfig, named: (setting: string) => string): Generator<string> {
  if (config.port !== 0 && config.port === config.adminPort && config.host === config.adminHost) {
    yield `${named("port")} and ${named("adminPort")} are both ${config.port} on ${config.host}; choose two`;
  }
}
