import { describe, expect, test } from "vitest";
import { BrokerStartError } from "../../errors.ts";
import { parseRedisUrl, type RedisOptions, readTarget } from "./target.ts";

const options: RedisOptions = {
  url: null,
  nodes: [],
  sentinel: null,
  username: null,
  password: null,
  tls: { ca: null, cert: null, key: null, serverName: null },
  keyPrefix: "zenml:stream:server",
  maxConnections: 10,
  socketTimeoutSeconds: 2,
  maxStreamLength: 10_000,
  streamTtlSeconds: 3_600,
  pingOnStart: true,
};

function refusal(change: Partial<RedisOptions>): string {
  try {
    readTarget({ ...options, ...change });
  } catch (error) {
    expect(error).toBeInstanceOf(BrokerStartError);
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

describe("the URL of Redis", () => {
  test.each([
    ["redis://redis.example.org", { host: "redis.example.org", port: 6379, path: null, database: 0 }],
    ["redis://redis.example.org:7000/3", { host: "redis.example.org", port: 7000, path: null, database: 3 }],
    ["REDISS://[2001:db8::1]:7001/", { host: "2001:db8::1", port: 7001, path: null, database: 0 }],
    ["redis://:secret@/2", { host: "localhost", port: 6379, path: null, database: 2 }],
    ["redis://redis.example.org?db=4", { host: "redis.example.org", port: 6379, path: null, database: 4 }],
    ["unix:///run/redis%20one.sock?db=1", { host: "", port: 0, path: "/run/redis one.sock", database: 1 }],
    ["unix://user:secret@/run/redis.sock", { host: "", port: 0, path: "/run/redis.sock", database: 0 }],
  ])("%s", (url, address) => {
    expect(parseRedisUrl(url).address).toEqual(address);
  });

  test.each([
    ["aB%2B%2F4g%3D%3D", "aB+/4g=="],
    ["p%40ss%3Aw%2Frd", "p@ss:w/rd"],
    ["100%2525", "100%25"],
    ["a%23b%3Fc%26d", "a#b?c&d"],
    ["p%C3%A4%20ss", "pä ss"],
    ["%27%22%24%60%5C", "'\"$`\\"],
    ["raw:colon@at", "raw:colon@at"],
  ])("the password %s is decoded exactly once", (encoded, password) => {
    const url = parseRedisUrl(`redis://stream:${encoded}@127.0.0.1:6379/0`);
    expect([url.username, url.password]).toEqual(["stream", password]);
    expect(url.address.host).toBe("127.0.0.1");
  });

  test.each(["aB+/4g==", "a?b", "a#b", "12/34", "100%", "6379/0"])(
    "a raw %s in the password is refused without being shown",
    (password) => {
      const message = refusal({ url: `redis://stream:${password}@127.0.0.1:6379/0` });
      expect(message).toMatch(/percent-enc/);
      expect(message).not.toContain("\n");
      expect(message.replace("%2F", "").replace("%3F", "").replace("%23", "").replace("%25", "")).not.toContain(password);
    },
  );

  test.each([
    ["http://redis.example.org", /redis:\/\/, rediss:\/\/ or unix:\/\//],
    ["redis.example.org:6379", /redis:\/\//],
    ["redis://redis.example.org:0", /host and port/],
    ["redis://redis.example.org:70000", /host and port/],
    ["redis://redis.example.org/name", /number of a database/],
    ["redis://redis.example.org?ssl_cert_reqs=none", /ssl_cert_reqs/],
    ["unix://", /path of a socket/],
  ])("%s is refused", (url, reason) => {
    expect(refusal({ url })).toMatch(reason);
  });
});

describe("what belongs together", () => {
  test("nodes stand in for the URL's host, user and password may come from either", () => {
    const target = readTarget({ ...options, nodes: ["a.example.org:1", "[2001:db8::1]:2"], username: "u", password: "p" });
    expect(target.seeds.map(({ host, port }) => [host, port])).toEqual([
      ["a.example.org", 1],
      ["2001:db8::1", 2],
    ]);
    expect(target.credentials).toEqual({ username: "u", password: "p" });
    expect(target.tls).toBeNull();
    expect(readTarget({ ...options, url: "redis://x:y@h", username: "u", password: "p" }).credentials).toEqual({
      username: "x",
      password: "y",
    });
  });

  test("a Sentinel needs no URL; its own addresses default to its own port", () => {
    const target = readTarget({ ...options, sentinel: { masterName: "m", nodes: ["s1.example.org:1", "s2.example.org"] } });
    expect(target.sentinel?.addresses.map(({ port }) => port)).toEqual([1, 26379]);
  });

  test("contradictions are refused by name", () => {
    expect(refusal({})).toMatch(/no Redis is given/);
    const tls = { ca: "PEM", cert: null, key: null, serverName: null };
    expect(refusal({ url: "redis://h", tls })).toMatch(/rediss:\/\//);
    expect(refusal({ url: "rediss://h", tls: { ...tls, cert: "PEM" } })).toMatch(/keyFile/);
    expect(refusal({ url: "unix:///s", sentinel: { masterName: "m", nodes: ["h:1"] } })).toMatch(/sentinel/);
    expect(readTarget({ ...options, nodes: ["h:1"], tls }).tls).toEqual(tls);
  });
});
