import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certificates, createCertificates } from "../support/certificates.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { freePort, type RedisServer, startRedis } from "../support/redis-servers.ts";
import { makeBroker, publish, Recorder, startBroker, type TestBroker } from "./redis-broker.ts";

/** All that the documentation says a user needs. */
const RIGHTS = [
  "~zenml:stream:server:*",
  "&__redis__:invalidate",
  "-@all",
  ..."xadd xread xrange xrevrange xinfo|stream expire pexpire pttl get set del hset hsetnx hmget multi exec"
    .split(" ")
    .map(allow),
  ..."client|id client|tracking client|trackinginfo client|setname subscribe ping info".split(" ").map(allow),
];

function allow(command: string): string {
  return `+${command}`;
}

/** Publishes and reads back, by a watch and by a page. */
async function useIt({ broker, close }: TestBroker): Promise<void> {
  const runId = randomUUID();
  const reader = new Recorder();
  broker.watch(runId, reader);
  await publish(broker, runId, 2);
  await reader.hear(2);
  const request = { runId, entries: [Buffer.from("{}")], idempotency: { scope: "me", key: "k", bodyHash: "h" } };
  await broker.publish(request);
  await broker.end(runId);
  await reader.hear(4);
  expect((await broker.readPage(runId, null, 10)).entries).toHaveLength(4);
  expect(broker.health()).toMatchObject({ readable: true });
  await close();
}

async function refusal(options: Parameters<typeof makeBroker>[0]): Promise<string> {
  const { broker } = makeBroker(options);
  const error = await broker.start().then(
    () => new Error("it started"),
    (reason: Error) => reason,
  );
  expect(error.message).not.toContain("\n");
  expect(error.message).toMatch(/^Stream broker startup probe failed/);
  return error.message;
}

describe("TLS with a CA of one's own", () => {
  let certificates: Certificates;
  let server: RedisServer;
  let ca: string;
  beforeAll(async () => {
    certificates = await createCertificates();
    ca = await readFile(certificates.ca, "utf8");
    const user = { name: "stream", password: "aB+/4g==" };
    const args = ["--user", "stream", "on", `>${user.password}`, ...RIGHTS, "--user", "default", "off"];
    server = await startRedis({
      tls: certificates,
      user: { ...user },
      args: [...args, "--user", "admin", "on", ">a", "~*", "+@all"],
    });
  });
  afterAll(async () => {
    await server?.stop();
    await certificates?.remove();
  });

  test("everything works for a user with the rights that are listed", async () => {
    await useIt(await startBroker({ url: server.url, tls: { ca, cert: null, key: null, serverName: null } }));
  });

  test("a client certificate is sent where one is asked for", async () => {
    const [cert, key] = await Promise.all([readFile(certificates.clientCert, "utf8"), readFile(certificates.clientKey, "utf8")]);
    const strict = await startRedis({ tls: certificates, args: [] });
    await strict.cli("CONFIG", "SET", "tls-auth-clients", "yes").catch(() => {});
    await useIt(await startBroker({ url: strict.url, tls: { ca, cert, key, serverName: null } }));
    await strict.stop();
  });

  test("a certificate of another CA, or for another name, is refused", async () => {
    expect(await refusal({ url: server.url })).toMatch(/redis\.tls\.caFile/);
    const tls = { ca, cert: null, key: null, serverName: "elsewhere.example.org" };
    expect(await refusal({ url: server.url, tls })).toMatch(/altnames|elsewhere/);
  });

  test("without TLS the start says to use rediss://", async () => {
    expect(await refusal({ url: server.url.replace("rediss:", "redis:") })).toContain("rediss://");
  });

  test("a cluster with TLS is read node by node", async () => {
    const cluster = await startRedisCluster({ tls: certificates, masters: 3, replicas: 0 });
    await useIt(await startBroker({ url: cluster.url, tls: { ca, cert: null, key: null, serverName: null } }));
    await cluster.stop();
  });
});

describe("users and passwords", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());

  test.each(["aB+/4g==", "p@ss:w/rd", "100%25", "a#b?c&d", "pä ss", "'\"$`\\"])(
    "the password %s works in the URL and by itself",
    async (password) => {
      await server.cli("ACL", "SETUSER", "stream", "reset", "on", `>${password}`, ...RIGHTS);
      const address = `127.0.0.1:${server.port}`;
      await useIt(await startBroker({ url: `redis://stream:${encodeURIComponent(password)}@${address}/0` }));
      await useIt(await startBroker({ nodes: [address], username: "stream", password }));
    },
  );

  test("a wrong password, a user without rights and a port without Redis each end the start with a line that says what to do", async () => {
    await server.cli("ACL", "SETUSER", "stream", "reset", "on", ">right", "+ping", "+info");
    const wrong = await refusal({ url: `redis://stream:verywrong@127.0.0.1:${server.port}` });
    expect(wrong).toContain("user and password");
    expect(wrong).not.toContain("verywrong");
    expect(await refusal({ url: `redis://stream:right@127.0.0.1:${server.port}` })).toContain("NOPERM");
    // Without it no mark of an end could be read, which at run time is taken for a master that is away.
    await server.cli("ACL", "SETUSER", "stream", "reset", "on", ">right", ...RIGHTS, "-get");
    expect(await refusal({ url: `redis://stream:right@127.0.0.1:${server.port}` })).toMatch(/NOPERM.*'get'/);
    expect(await refusal({ url: `redis://127.0.0.1:${await freePort()}` })).toMatch(/ECONNREFUSED.*host and port/);
    expect(await refusal({ url: "redis://no-such-host.invalid" })).toMatch(/not known here/);
  });

  test("without pingOnStart an unreachable Redis is waited for", async () => {
    const { broker, close } = await startBroker({ url: `redis://127.0.0.1:${await freePort()}`, pingOnStart: false });
    expect(broker.health()).toMatchObject({ readable: false, writable: false });
    await close();
  });
});
