/**
 * Every setting of the gateway: name, default, unit, meaning, flag, variables. The command line, the messages, `penstock config
 * schema` and docs/configuration.md are made from this. `loadConfig` (gateway/config/load.ts) reads it from its sources.
 */
import * as z from "zod";
import {
  boolean,
  bytes,
  choice,
  host,
  integer,
  list,
  nullable,
  number,
  positive,
  text,
  type WorkerCounts,
  workerCounts,
} from "./config/kinds.ts";
import { group, setting, type ZenmlVariable } from "./config/setting.ts";

const DAY_SECONDS = 86_400;
const ONE_WORKER: WorkerCounts = { min: 1, max: 1 };

const redis = group({
  url: setting({
    kind: nullable(text("a URL such as redis://redis.example.org:6379/0 (rediss:// for TLS, unix:// for a socket)")),
    default: null,
    about: "Where Redis is. Percent-encode what is not a letter or digit in the user name and password.",
    secret: true,
    zenml: redisVariables("BROKER_URL"),
  }),
  nodes: setting({
    kind: list("a list of host:port", /^(\[[^\]]+\]|[^:\s]+):\d{1,5}$/),
    default: [],
    about:
      "Nodes of Redis to start from, in place of the host of `redis.url`, if there is one. Whether they form a cluster is asked, not set.",
  }),
  sentinel: z
    .strictObject({
      masterName: setting({
        kind: text("the name of the master, such as mymaster"),
        about: "Name under which Sentinel knows the master.",
      }),
      nodes: setting({
        kind: list("a list of host:port", /^(\[[^\]]+\]|[^:\s]+):\d{1,5}$/),
        about: "Sentinels to ask for the master, which then stands in for the host of `redis.url`.",
      }),
    })
    .nullable()
    .default(null),
  username: setting({ kind: nullable(text("a user name")), default: null, about: "ACL user, if the URL has none." }),
  usernameFile: setting({ kind: nullable(text("the path of a file")), default: null, about: "File with the ACL user." }),
  password: setting({
    kind: nullable(text("a password")),
    default: null,
    about: "Password, as it is, if the URL has none. Better: `redis.passwordFile`.",
    secret: true,
  }),
  passwordFile: setting({
    kind: nullable(text("the path of a file")),
    default: null,
    about: "File with the password, as it is; one line break at its end goes.",
  }),
  tls: group({
    caFile: setting({
      kind: nullable(text("the path of a PEM file")),
      default: null,
      about: "Certificates to trust instead of the system's, with rediss://.",
    }),
    certFile: setting({ kind: nullable(text("the path of a PEM file")), default: null, about: "Our client certificate." }),
    keyFile: setting({ kind: nullable(text("the path of a PEM file")), default: null, about: "Key of our client certificate." }),
    serverName: setting({
      kind: nullable(text("a host name")),
      default: null,
      about: "Name that the server's certificate must bear; null: the host's.",
    }),
  }),
  keyPrefix: setting({
    kind: text("a prefix without white space", /^\S+$/),
    default: "zenml:stream:server",
    about: "Start of every key: `<keyPrefix>:<deploymentId>:run:<run>`.",
  }),
  maxConnections: setting({
    kind: raised(integer(1, 50), 3),
    default: 10,
    about: "Most connections of a process to one Redis node. 1 and 2 count as 3: reading takes two, publishing one.",
    zenml: redisVariables("MAX_CONNECTIONS"),
  }),
  socketTimeoutSeconds: setting({
    kind: number(1, 30),
    default: 2,
    about: "How long Redis may leave a command without answer.",
    zenml: redisVariables("SOCKET_TIMEOUT"),
  }),
  maxStreamLength: setting({
    kind: integer(1),
    default: 10_000,
    about: "About how many events a run keeps (MAXLEN ~).",
    zenml: redisVariables("MAX_STREAM_LENGTH"),
  }),
  streamTtlSeconds: setting({
    kind: integer(1),
    default: 3_600,
    about: "How long a run is kept after its last publish.",
    zenml: redisVariables("STREAM_TTL_SECONDS"),
  }),
  pingOnStart: setting({
    kind: boolean(),
    default: true,
    about: "Whether an unreachable Redis ends the first start.",
    zenml: redisVariables("PING_ON_START"),
  }),
});

const memory = group({
  totalBytes: setting({
    kind: bytes(1_048_576),
    default: 256 * 2 ** 20,
    about: "Most bytes that all runs together keep; the coldest run gives way first.",
  }),
  maxStreamLength: setting({
    kind: integer(1),
    default: 10_000,
    about: "How many events a run keeps.",
    zenml: [{ name: "ZENML_IN_MEMORY_BROKER_MAX_LEN" }],
  }),
  streamTtlSeconds: setting({ kind: integer(1), default: 3_600, about: "How long a run is kept after its last publish." }),
});

const streaming = group({
  heartbeatSeconds: setting({
    kind: positive(DAY_SECONDS),
    default: 30,
    about: "A stream on which no byte has left for so long gets a comment; an idle one after half of it.",
    flag: "--heartbeat-seconds",
    zenml: [{ name: "ZENML_SERVER_STREAMING_HEARTBEAT_SECONDS" }],
  }),
  maxSubscribersPerStream: setting({
    kind: integer(1),
    default: 100,
    about: "Most readers of one run on this gateway; more are answered 503.",
    flag: "--max-subscribers-per-stream",
    zenml: [{ name: "ZENML_SERVER_STREAMING_MAX_SUBSCRIBERS_PER_STREAM" }],
  }),
  idleGraceSeconds: setting({
    kind: positive(DAY_SECONDS),
    default: 30,
    about: "How long a run's ring and reader stay when its last reader is gone.",
    flag: "--idle-grace-seconds",
    zenml: [{ name: "ZENML_SERVER_STREAMING_BROADCASTER_IDLE_GRACE_SECONDS" }],
  }),
  maxConnectionsPerWorker: setting({
    kind: integer(1),
    default: 18_000,
    about: "A worker with so many connections stops accepting, until it is down to nine tenths.",
    flag: "--max-connections-per-worker",
  }),
  connectionsPerWorker: setting({
    kind: integer(1),
    default: 5_000,
    about:
      "Where `workers` is a range: with more on average there is one worker more; when the others would have been half full at most for a minute, one less.",
    flag: "--connections-per-worker",
  }),
  slowConsumer: setting({
    kind: choice("replay", "gap", "disconnect"),
    default: "replay",
    about:
      "What happens to a reader that falls off the ring: `replay` feeds it from history, `gap` skips it ahead and says so, `disconnect` ends its stream.",
    flag: "--slow-consumer",
  }),
  stallSeconds: setting({
    kind: positive(DAY_SECONDS),
    default: 30,
    about: "A stream whose socket took no byte for so long, though some were due, is closed.",
    flag: "--stall-seconds",
  }),
});

const flow = group({
  ring: group({
    events: setting({
      kind: integer(1, 1_000_000),
      default: 1_024,
      about: "Most events that a run's ring holds.",
      flag: "--ring-events",
    }),
    bytes: setting({
      kind: bytes(65_536),
      default: 4 * 2 ** 20,
      about: "Most bytes that a run's ring holds.",
      flag: "--ring-bytes",
    }),
    totalBytes: setting({
      kind: nullable(bytes(1_048_576)),
      default: null,
      about:
        "Most bytes that all rings of a worker hold, the coldest shrinking first; null: a quarter of its part of the memory limit.",
      flag: "--ring-total-bytes",
    }),
  }),
  coalesceMs: setting({
    kind: number(0, 1_000),
    default: 10,
    about: "On a busy stream events wait at most so long to leave together; 0: never.",
    flag: "--coalesce-ms",
  }),
  maxAgeMinutes: setting({
    kind: number(0, 7 * 1_440),
    default: 60,
    about: "A stream ends cleanly at this age, 20 % more or less, so that replicas even out; 0: never.",
    flag: "--max-age-minutes",
  }),
});

const overload = group({
  enabled: setting({
    kind: boolean(),
    default: true,
    about: "Whether a worker that is short of memory or time sheds load (docs/running.md); false: it only shows how short.",
  }),
  maxLoopLagMs: setting({
    kind: integer(10, 60_000),
    default: 500,
    about: "A worker whose event loop is late by so long, on average over some seconds, refuses new streams.",
  }),
  memoryLimitBytes: setting({
    kind: nullable(bytes(64 * 2 ** 20)),
    default: null,
    about: "What all workers together may keep in memory; null: the control group's limit, or the machine's memory.",
  }),
});

const auth = group({
  mode: setting({
    kind: choice("none", "static", "jwt"),
    default: "none",
    about:
      "Who may read and publish: everybody (on loopback, or with `auth.insecure`), holders of a token in a file, holders of a JWT.",
    flag: "--auth",
  }),
  insecure: setting({
    kind: boolean(),
    default: false,
    about: "Allows `auth.mode: none` on an address that others can reach.",
    flag: "--insecure",
  }),
  static: group({
    tokensFile: setting({
      kind: nullable(text("the path of a file")),
      default: null,
      about: "Tokens and their rights (docs/auth.md); read again when it changes.",
      flag: "--tokens-file",
    }),
  }),
  jwt: group({
    jwksUrl: setting({
      // Without credentials: they would stand in the log when the issuer is away.
      kind: nullable(text("an http:// or https:// URL without a user name", /^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/)),
      default: null,
      about: "Where the issuer publishes its keys.",
      flag: "--jwks-url",
    }),
    keyFile: setting({
      kind: nullable(text("the path of a file")),
      default: null,
      about:
        "Instead of `auth.jwt.jwksUrl`: a PEM public key or certificate, a JWK, a JWKS, or a shared secret of at least 32 bytes.",
      flag: "--jwt-key-file",
    }),
    issuer: setting({
      kind: nullable(text("the issuer's `iss`")),
      default: null,
      about: "`iss` that a token must have.",
      flag: "--jwt-issuer",
    }),
    audience: setting({
      kind: nullable(text("the `aud` meant for this gateway")),
      default: null,
      about: "`aud` that a token must have.",
      flag: "--jwt-audience",
    }),
    algorithms: setting({
      kind: list("a list of algorithms such as RS256, ES256, EdDSA or HS256", /^(RS|PS|ES|HS)(256|384|512)$|^EdDSA$|^Ed25519$/),
      default: [],
      about: "Signatures that count; empty: all those of public keys, or of shared secrets where the key is one. Never both.",
    }),
    runIdsClaim: setting({
      kind: nullable(text("the name of a claim")),
      default: null,
      about: "Claim with the run id, or the list of run ids, to which a token is confined; null: all runs.",
    }),
    readScope: setting({
      kind: text("a scope", /^\S+$/),
      default: "runs:read",
      about: "Scope (`scope` or `scp`) that lets read.",
    }),
    publishScope: setting({ kind: text("a scope", /^\S+$/), default: "runs:publish", about: "Scope that lets publish and end." }),
    leewaySeconds: setting({
      kind: number(0, 300),
      default: 10,
      about: "By how much the issuer's clock may be ahead of ours (`nbf`). `exp` is exact.",
    }),
  }),
});

/** The schema of a configuration file. */
export const configSchema = z.strictObject({
  host: setting({
    kind: host(),
    default: "127.0.0.1",
    about: "Address to serve on.",
    flag: "--host",
  }),
  port: setting({ kind: integer(0, 65_535), default: 8_080, about: "Port to serve on; 0: any free one.", flag: "--port" }),
  adminHost: setting({
    kind: nullable(host()),
    default: null,
    about: "Address of /metrics, /healthz and /readyz; null: that of `host`.",
    flag: "--admin-host",
  }),
  adminPort: setting({
    kind: integer(0, 65_535),
    default: 9_090,
    about: "Port of /metrics, /healthz and /readyz; 0: any free one.",
    flag: "--admin-port",
  }),
  pathPrefix: setting({
    kind: pathPrefix(),
    default: "",
    about: "What stands before /api/v1 in every path, such as /zenml.",
    flag: "--path-prefix",
  }),
  workers: setting({
    kind: workerCounts(1_024),
    default: ONE_WORKER,
    about:
      "Worker processes on the one port. 1: all in one process. auto: one a core, as far as memory goes. A range: as many as connections need. More than 1 need the broker redis, or a module that shares what it keeps; with the memory broker `auto` is 1.",
    flag: "--workers",
  }),
  deploymentId: setting({
    kind: nullable(text("an id of letters, digits, '.', '_' and '-'", /^[A-Za-z0-9._-]{1,128}$/)),
    default: null,
    about:
      "Tells deployments apart that share a Redis; beside a ZenML server it is the `id` of its /api/v1/info. Needed with `redis`.",
    flag: "--deployment-id",
  }),
  broker: setting({
    kind: nullable(text("memory, redis, or the path of a module such as ./my-broker.ts")),
    default: null,
    about:
      "Where events are kept: `memory`, `redis`, or the path of a module that exports `createBroker`. null: none, and streams answer 501.",
    flag: "--broker",
    zenml: [{ name: "ZENML_SERVER_STREAM_BROKER_IMPLEMENTATION_SOURCE", read: zenmlBroker }],
  }),
  runIds: setting({
    kind: choice("any", "uuid"),
    default: "any",
    about: "Run ids that are accepted: UUIDs alone, or also names of letters, digits, '.', '_' and '-'.",
    flag: "--run-ids",
  }),
  redis,
  memory,
  streaming,
  flow,
  overload,
  auth,
  cors: group({
    allowedOrigins: setting({
      kind: list("a list of origins such as https://app.example.org, or *", /^(\*|null|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i),
      default: [],
      about: "Origins whose pages may call; `*`: all, without credentials.",
      flag: "--allowed-origins",
    }),
  }),
  drain: group({
    delaySeconds: setting({
      kind: number(0, 3_600),
      default: 5,
      about: "Between SIGTERM and the drain: time for load balancers to look elsewhere.",
      flag: "--drain-delay-seconds",
    }),
    seconds: setting({
      kind: number(0, DAY_SECONDS),
      default: 60,
      about: "How long the drain may take.",
      flag: "--drain-seconds",
    }),
    frames: setting({
      kind: choice("penstock", "zenml"),
      default: "penstock",
      about: "How a drained stream ends: cleanly, to be resumed; or with `gap: shutdown` and `end`, as ZenML's server would.",
      flag: "--drain-frames",
    }),
  }),
  log: group({
    level: setting({
      kind: choice("trace", "debug", "info", "warn", "error", "fatal", "silent"),
      default: "info",
      about: "Least level that is written.",
      flag: "--log-level",
    }),
    format: setting({
      kind: choice("json", "pretty"),
      default: "json",
      about: "One JSON line an occurrence, or text for people.",
      flag: "--log-format",
    }),
  }),
});

/** A whole configuration: every setting has its value. */
export type GatewayConfig = Omit<z.output<typeof configSchema>, "adminHost"> & { readonly adminHost: string };

function redisVariables(name: string): ZenmlVariable[] {
  return [{ name: `ZENML_REDIS_STREAMS_BROKER_${name}` }, { name: `ZENML_REDIS_${name}` }];
}

const ZENML_BROKERS: Record<string, string> = {
  "zenml.zen_server.streaming.brokers.redis_streams.RedisStreamsBroker": "redis",
  "zenml.zen_server.streaming.brokers.memory.InMemoryBroker": "memory",
};

function zenmlBroker(source: string): string {
  const broker = ZENML_BROKERS[source];
  if (broker === undefined)
    throw new Error("names a Python class that runs in ZenML's server only; set broker to redis or memory");
  return broker;
}

function raised(kind: ReturnType<typeof integer>, least: number): typeof kind {
  return { ...kind, schema: kind.schema.transform((value) => Math.max(value, least)) as unknown as z.ZodType<number> };
}

function pathPrefix(): ReturnType<typeof text> {
  const schema = z.preprocess(
    (value) => (typeof value === "string" ? value.replace(/\/+$/, "") : value),
    z.string().regex(/^(\/[A-Za-z0-9._~-]+)*$/),
  );
  return { schema, expects: "a path such as /zenml" };
}
