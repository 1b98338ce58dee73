/** Where Redis is and how to sign in, out of the settings; wrong ones are refused here, before anything is connected. */
import { BrokerStartError } from "../../errors.ts";

/** The `redis` part of the configuration, its files already read. */
export interface RedisOptions {
  /** redis://, rediss:// or unix://; user, password and database may be in it. */
  readonly url: string | null;
  /** `host:port` each, in place of the URL's host. */
  readonly nodes: readonly string[];
  readonly sentinel: { readonly masterName: string; readonly nodes: readonly string[] } | null;
  readonly username: string | null;
  readonly password: string | null;
  readonly tls: TlsSettings;
  readonly keyPrefix: string;
  /** Most connections of this process to one node; at least 3. */
  readonly maxConnections: number;
  readonly socketTimeoutSeconds: number;
  readonly maxStreamLength: number;
  readonly streamTtlSeconds: number;
  readonly pingOnStart: boolean;
}

/** PEM texts. */
export interface TlsSettings {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly serverName: string | null;
}

export interface Address {
  readonly host: string;
  readonly port: number;
  /** A Unix socket instead. */
  readonly path: string | null;
  readonly database: number;
}

export interface Credentials {
  readonly username: string | null;
  readonly password: string | null;
}

export interface RedisTarget {
  readonly seeds: readonly Address[];
  readonly sentinel: { readonly masterName: string; readonly addresses: readonly Address[] } | null;
  readonly credentials: Credentials;
  /** null: no TLS. */
  readonly tls: TlsSettings | null;
  readonly database: number;
}

const DEFAULT_PORT = 6379;
const SENTINEL_PORT = 26379;

/** Throws BrokerStartError with one line that names the setting and holds no secret. */
export function readTarget(options: RedisOptions): RedisTarget {
  const url = options.url === null ? null : parseRedisUrl(options.url);
  const { ca, cert, key, serverName } = options.tls;
  const tlsIsSet = ca !== null || cert !== null || key !== null || serverName !== null;
  if (url !== null && !url.secure && tlsIsSet) {
    throw new BrokerStartError("redis.tls is set, but the Redis URL is not rediss://; write rediss:// or remove redis.tls.");
  }
  if ((cert === null) !== (key === null)) {
    throw new BrokerStartError("redis.tls.certFile and redis.tls.keyFile need each other; set both or none.");
  }
  const database = url?.database ?? 0;
  const nodes = options.nodes.map((node) => parseNode(node, "redis.nodes", DEFAULT_PORT, database));
  const seeds = nodes.length > 0 ? nodes : url === null ? [] : [url.address];
  if (options.sentinel !== null && seeds.some((seed) => seed.path !== null)) {
    throw new BrokerStartError("redis.sentinel needs a redis:// or rediss:// URL, not unix://.");
  }
  const sentinel = options.sentinel && {
    masterName: options.sentinel.masterName,
    addresses: options.sentinel.nodes.map((node) => parseNode(node, "redis.sentinel.nodes", SENTINEL_PORT, 0)),
  };
  if (seeds.length === 0 && sentinel === null) {
    throw new BrokerStartError("no Redis is given; set ZENML_REDIS_BROKER_URL, redis.url, redis.nodes or redis.sentinel.");
  }
  return {
    seeds,
    sentinel,
    credentials: { username: url?.username ?? options.username, password: url?.password ?? options.password },
    tls: (url?.secure ?? tlsIsSet) ? options.tls : null,
    database,
  };
}

/** For messages: a host and port, or a socket's path. */
export function describeAddress(address: Address): string {
  if (address.path !== null) return address.path;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

interface RedisUrl {
  readonly address: Address;
  readonly secure: boolean;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
}

/**
 * Read by hand: WHATWG's parser takes a password with a raw `/` for a host and a path, and encodes some of what it was given encoded.
 * Each part is percent-decoded exactly once. No message repeats any part of the URL.
 */
export function parseRedisUrl(text: string): RedisUrl {
  const match = /^(redis|rediss|unix):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/is.exec(text.trim());
  if (match === null) throw refused("must begin with redis://, rediss:// or unix://");
  const scheme = match[1]!.toLowerCase();
  const authority = match[2]!;
  const [path, query, fragment] = [match[3]!, match[4] ?? "", match[5] ?? ""];
  if (/@/.test(path + query + fragment)) {
    throw refused(
      "has a / ? or # in its user name or password; percent-encode it (/ is %2F, ? is %3F, # is %23), or give the password by redis.passwordFile",
    );
  }
  if (fragment !== "") throw refused("has a #; write it as %23");
  const at = authority.lastIndexOf("@");
  const { username, password } = readLogin(authority.slice(0, Math.max(at, 0)));
  const host = authority.slice(at + 1);
  const queryDatabase = readQuery(query);
  if (scheme === "unix") {
    const socket = decode(host === "" ? path : `${host}${path}`, "path");
    if (socket === "" || socket === "/") throw refused("has no path of a socket; write unix:///path/of/redis.sock");
    const database = queryDatabase ?? 0;
    return { address: { host: "", port: 0, path: socket, database }, secure: false, username, password, database };
  }
  const pathDatabase = /^\/?$/.test(path) ? null : /^\/(\d{1,5})\/?$/.exec(path)?.[1];
  if (pathDatabase === undefined) throw refused("has a path that is not the number of a database");
  const database = pathDatabase === null ? (queryDatabase ?? 0) : Number(pathDatabase);
  const address = parseHost(host, DEFAULT_PORT, database);
  if (address === null) throw refused("has no host and port as in redis.example.org:6379; percent-encode user name and password");
  return { address, secure: scheme === "rediss", username, password, database };
}

function readLogin(login: string): Credentials {
  if (login === "") return { username: null, password: null };
  const colon = login.indexOf(":");
  const username = decode(colon < 0 ? login : login.slice(0, colon), "user name");
  const password = colon < 0 ? "" : decode(login.slice(colon + 1), "password");
  return { username: username === "" ? null : username, password: password === "" ? null : password };
}

function readQuery(query: string): number | null {
  let database: number | null = null;
  for (const pair of query === "" ? [] : query.split("&")) {
    const [name = "", value = ""] = pair.split("=");
    if (name !== "db") {
      const shown = /^[a-z_]{1,40}$/i.test(name) ? `the parameter ${name}, which` : "a parameter that";
      throw refused(`has ${shown} is not known; only db is, and TLS is set by redis.tls`);
    }
    if (!/^\d{1,5}$/.test(value)) throw refused("has a db that is not a number");
    database = Number(value);
  }
  return database;
}

function parseNode(node: string, setting: string, defaultPort: number, database: number): Address {
  const address = parseHost(node, defaultPort, database);
  if (address === null || node === "") throw new BrokerStartError(`${setting} has an item that is not host:port.`);
  return address;
}

function parseHost(text: string, defaultPort: number, database: number): Address | null {
  const match = /^(\[[0-9a-f:.%a-z]+\]|[^\s:@[\]]*)(?::(\d{1,5}))?$/i.exec(text);
  if (match === null) return null;
  const port = match[2] === undefined ? defaultPort : Number(match[2]);
  if (port < 1 || port > 65_535) return null;
  const host = match[1]!.replace(/^\[|\]$/g, "");
  return { host: host === "" ? "localhost" : host, port, path: null, database };
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(`has a % in its ${what} that begins no percent-encoding; write it as %25`);
  }
}

function refused(reason: string): BrokerStartError {
  return new BrokerStartError(`the Redis URL ${reason}.`);
}
