import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ConfigError } from "../errors.ts";
import { loadConfig, SETTINGS, withoutSecrets } from "./load.ts";

const folder = mkdtempSync(join(tmpdir(), "penstock-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Given {
  readonly flags?: Record<string, unknown>;
  readonly env?: Record<string, string>;
  readonly yaml?: string;
}

function load({ flags = {}, env = {}, yaml }: Given) {
  let file: string | null = null;
  if (yaml !== undefined) {
    file = join(folder, "gateway.yaml");
    writeFileSync(file, yaml);
  }
  return loadConfig({ flags: new Map(Object.entries(flags)), env, file });
}

function problemsOf(given: Given): string {
  try {
    load(given);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message.replaceAll(folder, "");
  }
  throw new Error("the configuration was taken");
}

describe("where a value comes from", () => {
  it("a flag wins over a variable, a variable over the file, the file over the default", () => {
    const flags = { "streaming.heartbeatSeconds": "1" };
    const env = { PENSTOCK_STREAMING_HEARTBEAT_SECONDS: "2", PENSTOCK_STREAMING_STALL_SECONDS: "3" };
    const yaml = "streaming: {heartbeatSeconds: 4, stallSeconds: 5, idleGraceSeconds: 6}";
    const { config, sources } = load({ flags, env, yaml });
    expect(config.streaming).toMatchObject({
      heartbeatSeconds: 1,
      stallSeconds: 3,
      idleGraceSeconds: 6,
      maxSubscribersPerStream: 100,
    });
    expect(sources.get("streaming.heartbeatSeconds")).toBe("--heartbeat-seconds");
    expect(sources.get("streaming.stallSeconds")).toBe("PENSTOCK_STREAMING_STALL_SECONDS");
    expect(sources.get("streaming.idleGraceSeconds")).toMatch(/gateway\.yaml$/);
    expect(sources.has("streaming.maxSubscribersPerStream")).toBe(false);
  });

  it("workers are a number, auto or a range, as text and in a file", () => {
    const workers = (text: string): unknown => load({ flags: { workers: text } }).config.workers;
    expect(load({}).config.workers).toEqual({ min: 1, max: 1 });
    expect(workers("3")).toEqual({ min: 3, max: 3 });
    expect(workers("auto")).toEqual({ min: "auto", max: "auto" });
    expect(workers("2-8")).toEqual({ min: 2, max: 8 });
    expect(workers("1-auto")).toEqual({ min: 1, max: "auto" });
    expect(load({ yaml: "workers: {min: 2, max: 8}" }).config.workers).toEqual({ min: 2, max: 8 });
    expect(load({ yaml: "workers: {max: 8}" }).config.workers).toEqual({ min: 1, max: 8 });
    expect(load({ yaml: "workers: auto" }).config.workers).toEqual({ min: "auto", max: "auto" });
    expect(load({ env: { PENSTOCK_WORKERS: "4" } }).config.workers).toEqual({ min: 4, max: 4 });
    expect(load({ flags: { broker: "memory", workers: "auto" } }).config.workers).toEqual({ min: "auto", max: "auto" });
  });

  it("our variable wins over ZenML's streams prefix, and that over its Redis prefix", () => {
    const own = { PENSTOCK_REDIS_MAX_STREAM_LENGTH: "1" };
    const streams = { ZENML_REDIS_STREAMS_BROKER_MAX_STREAM_LENGTH: "2" };
    const redis = { ZENML_REDIS_MAX_STREAM_LENGTH: "3" };
    expect(load({ env: { ...redis, ...streams, ...own } }).config.redis.maxStreamLength).toBe(1);
    expect(load({ env: { ...redis, ...streams } }).config.redis.maxStreamLength).toBe(2);
    expect(load({ env: { ...redis }, yaml: "redis: {maxStreamLength: 9}" }).config.redis.maxStreamLength).toBe(3);
  });

  it("takes ZenML's variables as they are", () => {
    const env = {
      ZENML_SERVER_STREAM_BROKER_IMPLEMENTATION_SOURCE: "zenml.zen_server.streaming.brokers.redis_streams.RedisStreamsBroker",
      ZENML_SERVER_STREAMING_HEARTBEAT_SECONDS: "0.5",
      ZENML_SERVER_STREAMING_MAX_SUBSCRIBERS_PER_STREAM: "7",
      ZENML_SERVER_STREAMING_BROADCASTER_IDLE_GRACE_SECONDS: "1.5",
      ZENML_REDIS_BROKER_URL: "redis://redis.example.org:6379/0",
      ZENML_REDIS_MAX_CONNECTIONS: "50",
      ZENML_REDIS_SOCKET_TIMEOUT: "2.0",
      ZENML_REDIS_PING_ON_START: "False",
      ZENML_REDIS_STREAMS_BROKER_STREAM_TTL_SECONDS: "60",
    };
    const { config } = load({ env, flags: { deploymentId: "live" } });
    expect(config).toMatchObject({
      broker: "redis",
      streaming: { heartbeatSeconds: 0.5, maxSubscribersPerStream: 7, idleGraceSeconds: 1.5 },
      redis: { maxConnections: 50, socketTimeoutSeconds: 2, pingOnStart: false, streamTtlSeconds: 60 },
    });
  });

  it("ZenML's memory broker is ours", () => {
    const env = { ZENML_SERVER_STREAM_BROKER_IMPLEMENTATION_SOURCE: "zenml.zen_server.streaming.brokers.memory.InMemoryBroker" };
    expect(load({ env }).config.broker).toBe("memory");
  });

  it("an empty variable counts as unset, and so does a null or an empty group in the file", () => {
    const { config } = load({ env: { PENSTOCK_PORT: "" }, yaml: "port: null\nredis:\nauth: {jwt: null}\n" });
    expect(config.port).toBe(8080);
    expect(config.broker).toBeNull();
  });

  it("variables that Kubernetes makes for a Service named penstock are not taken for settings", () => {
    const env = {
      PENSTOCK_PORT: "tcp://10.0.0.7:8080",
      PENSTOCK_SERVICE_HOST: "10.0.0.7",
      PENSTOCK_SERVICE_PORT_HTTP: "8080",
      PENSTOCK_PORT_8080_TCP_ADDR: "10.0.0.7",
      PENSTOCK_LIVE_PORT: "tcp://10.0.0.8:8080",
    };
    expect(load({ env }).config.port).toBe(8080);
  });

  it("a file may be JSON", () => {
    expect(load({ yaml: '{"port": 1234, "redis": {"nodes": ["redis-0.example.org:6379"]}}' }).config).toMatchObject({
      port: 1234,
      redis: { nodes: ["redis-0.example.org:6379"] },
    });
  });

  it("every setting has a variable of its own", () => {
    expect(new Set(SETTINGS.map(({ variable }) => variable)).size).toBe(SETTINGS.length);
    expect(SETTINGS.map(({ variable }) => variable)).toContain("PENSTOCK_REDIS_SENTINEL_MASTER_NAME");
    const flags = SETTINGS.flatMap(({ flag }) => flag ?? []);
    expect(new Set(flags).size).toBe(flags.length);
  });

  it("Sentinel can be named by variables alone", () => {
    const env = {
      PENSTOCK_REDIS_SENTINEL_MASTER_NAME: "mymaster",
      PENSTOCK_REDIS_SENTINEL_NODES: "a.example.org:26379, b.example.org:26379",
    };
    expect(load({ env }).config.redis.sentinel).toEqual({
      masterName: "mymaster",
      nodes: ["a.example.org:26379", "b.example.org:26379"],
    });
  });
});

describe("what values look like", () => {
  it.each([
    ["false", false],
    ["False", false],
    ["0", false],
    ["off", false],
    ["no", false],
    ["true", true],
    ["1", true],
    ["yes", true],
  ])("the word %s is %s, in a variable and in a file", (word, value) => {
    expect(load({ env: { PENSTOCK_AUTH_INSECURE: word } }).config.auth.insecure).toBe(value);
    expect(load({ yaml: `auth: {insecure: "${word}"}` }).config.auth.insecure).toBe(value);
  });

  it.each([
    ["4Mi", 4 * 2 ** 20],
    ["4MiB", 4 * 2 ** 20],
    ["1.5Gi", 1.5 * 2 ** 30],
    ["128k", 128_000],
    ["100000", 100_000],
  ])("%s is a number of bytes", (text, bytes) => {
    expect(load({ yaml: `flow: {ring: {bytes: ${text}}}` }).config.flow.ring.bytes).toBe(bytes);
  });

  it("1 and 2 connections to Redis count as 3, which is what reading and publishing take", () => {
    const connections = (text: string) => load({ env: { ZENML_REDIS_MAX_CONNECTIONS: text } }).config.redis.maxConnections;
    expect([connections("1"), connections("3"), connections("10")]).toEqual([3, 3, 10]);
  });

  it("a path prefix loses its last slash", () => {
    expect(load({ flags: { pathPrefix: "/zenml/" } }).config.pathPrefix).toBe("/zenml");
    expect(load({ flags: { pathPrefix: "/" } }).config.pathPrefix).toBe("");
  });

  it("the admin port listens where the gateway does unless told otherwise", () => {
    expect(load({ flags: { host: "127.0.0.2" } }).config.adminHost).toBe("127.0.0.2");
    expect(load({ flags: { adminHost: "::1" } }).config).toMatchObject({ host: "127.0.0.1", adminHost: "::1" });
  });

  it("an IPv6 address may stand in brackets, as in a URL", () => {
    expect(load({ flags: { host: "[::1]" } }).config).toMatchObject({ host: "::1", adminHost: "::1" });
    expect(problemsOf({ flags: { host: "[::]" } })).toContain("host (from --host) is ::, which others can reach");
  });
});

describe("what is refused", () => {
  const cases: [string, Given, RegExp][] = [
    [
      "a number that is none",
      { flags: { port: "80a" } },
      /^port \(from --port\) is "80a"; write a whole number from 0 to 65535$/,
    ],
    [
      "a number out of range",
      { env: { ZENML_REDIS_MAX_CONNECTIONS: "51" } },
      /^redis\.maxConnections \(from ZENML_REDIS_MAX_CONNECTIONS\) is "51"; write/,
    ],
    ["a heartbeat of 0", { yaml: "streaming: {heartbeatSeconds: 0}" }, /heartbeatSeconds .* is 0; write a number above 0/],
    ["an endless heartbeat", { yaml: "streaming: {heartbeatSeconds: .inf}" }, /heartbeatSeconds .*; write a number above 0/],
    ["an empty number", { yaml: 'port: " "' }, /^port .* is " "; write/],
    ["a word out of a choice", { flags: { "streaming.slowConsumer": "drop" } }, /is "drop"; write replay, gap or disconnect$/],
    [
      "an unknown key",
      { yaml: "streaming: {heartbeetSeconds: 3}" },
      /^streaming\.heartbeetSeconds .* is no setting \(did you mean streaming\.heartbeatSeconds\?\)/,
    ],
    ["a key outside its group", { yaml: "heartbeatSeconds: 3" }, /did you mean streaming\.heartbeatSeconds\?/],
    ["a key in another spelling", { yaml: "deployment_id: x" }, /did you mean deploymentId\?/],
    ["a wrong group", { yaml: "reddis: {url: x}" }, /^reddis .*did you mean redis\?/],
    ["an unknown variable", { env: { PENSTOCK_HEARTBEAT_SECONDS: "3" } }, /did you mean PENSTOCK_STREAMING_HEARTBEAT_SECONDS\?/],
    ["a value for a group", { yaml: "auth: none" }, /^auth .* is a group of settings; write them below it, such as auth\.mode$/],
    ["a list for a file", { yaml: "- port: 1" }, /^the file .* is a group of settings/],
    ["a key twice", { yaml: "port: 1\nport: 2" }, /neither YAML nor JSON: DUPLICATE_KEY in line 2, column 1/],
    [
      "an own class of a ZenML server",
      { env: { ZENML_SERVER_STREAM_BROKER_IMPLEMENTATION_SOURCE: "acme.Broker" } },
      /^ZENML_SERVER_STREAM_BROKER_IMPLEMENTATION_SOURCE names a Python class/,
    ],
    [
      "an unknown broker",
      { flags: { broker: "reddis" } },
      /^broker \(from --broker\) is "reddis" \(did you mean redis\?\); write memory, redis, or the path/,
    ],
    [
      "Redis without a place",
      { flags: { broker: "redis", deploymentId: "live" } },
      /^broker is redis, but no setting says where it is; set ZENML_REDIS_BROKER_URL/,
    ],
    [
      "Redis without a deployment id",
      { flags: { broker: "redis" }, env: { PENSTOCK_REDIS_URL: "redis://x" } },
      /^broker is redis, but deploymentId is missing; give --deployment-id/,
    ],
    [
      "half a Sentinel",
      { yaml: "redis: {sentinel: {masterName: m}}" },
      /^redis\.sentinel\.nodes is missing; write a list of host:port$/,
    ],
    [
      "two workers on memory",
      { flags: { broker: "memory", workers: "2" } },
      /^workers \(from --workers\) is 2, but the memory broker lives in one process; write 1, or choose the broker redis$/,
    ],
    [
      "a range of workers on memory",
      { flags: { broker: "memory" }, yaml: "workers: {max: 4}" },
      /^workers \(from .*gateway\.yaml\) is 1-4, but the memory broker lives in one process; write 1, or choose the broker redis$/,
    ],
    [
      "a range of workers the wrong way round",
      { yaml: "workers: {min: 4, max: 2}" },
      /^workers \(from .*gateway\.yaml\) is .*; write auto, a whole number from 1 to 1024, or a range such as 2-8, in a file {min: 2, max: 8}$/,
    ],
    ["no workers", { flags: { workers: "0" } }, /^workers \(from --workers\) is "0"; write auto, a whole number from 1 to 1024/],
    ["many workers", { flags: { workers: "many" } }, /^workers \(from --workers\) is "many"; write auto, a whole number/],
    [
      "no authentication where others come",
      { flags: { host: "0.0.0.0" } },
      /^host \(from --host\) is 0\.0\.0\.0, which others can reach, but auth\.mode is none; choose --auth/,
    ],
    ["static without a file", { flags: { "auth.mode": "static" } }, /auth\.static\.tokensFile is missing; give --tokens-file/],
    ["jwt without a key", { flags: { "auth.mode": "jwt" } }, /give exactly one of auth\.jwt\.jwksUrl and auth\.jwt\.keyFile/],
    [
      "shared secrets beside public keys",
      { yaml: "auth: {mode: jwt, jwt: {jwksUrl: 'https://id.example.org/jwks', algorithms: [HS256, RS256]}}" },
      /HS256, which need a shared secret/,
    ],
    [
      "an issuer's address with a password",
      { yaml: "auth: {mode: jwt, jwt: {jwksUrl: 'https://me:hush@id.example.org/jwks'}}" },
      /^auth\.jwt\.jwksUrl .* write an http:\/\/ or https:\/\/ URL without a user name$/,
    ],
    ["one port for two", { flags: { port: "9090" } }, /^port \(from --port\) and adminPort are both 9090/],
  ];
  it.each(cases)("%s", (_, given, message) => {
    expect(problemsOf(given)).toMatch(message);
  });

  it("all problems are told at once, a line each", () => {
    const lines = problemsOf({
      flags: { port: "x" },
      env: { PENSTOCK_PROT: "1" },
      yaml: "broker: [1]\nlog: {level: loud}",
    }).split("\n");
    expect(lines).toHaveLength(4);
  });

  it("no authentication is fine where others come, if somebody says so", () => {
    expect(load({ flags: { host: "0.0.0.0", "auth.insecure": true } }).config.auth.mode).toBe("none");
  });
});

describe("secrets", () => {
  it("stand in no message and in no copy that is shown", () => {
    const hush = "hush-9f";
    const given = { yaml: `redis: {url: [${hush}], password: [${hush}], nodes: 7}\nhush: ${hush}` };
    expect(problemsOf(given)).not.toContain(hush);
    expect(problemsOf({ yaml: `redis: {password: ${hush}\n  url: ${hush}:${hush}: x` })).not.toContain(hush);
    const url = `redis://me:${hush}/@redis.example.org:6379`;
    for (const flags of [{ broker: url }, { deploymentId: url }, { broker: "redis", runIds: url }]) {
      expect(problemsOf({ flags })).toContain("//***@redis.example.org");
      expect(problemsOf({ flags })).not.toContain(hush);
    }
    expect(problemsOf({ yaml: `redis: {nodes: ["${url}", "b:1"]}` })).not.toContain(hush);
    const { config } = load({ yaml: `redis: {url: "redis://:${hush}@redis.example.org", password: ${hush}}` });
    expect(JSON.stringify(withoutSecrets(config))).not.toContain(hush);
    expect(config.redis.password).toBe(hush);
  });
});
