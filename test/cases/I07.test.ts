/** I07: passwords that are not safe in a URL. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { caseBytes } from "../support/cases.ts";
import { type GatewayOptions, startFailing, startGateway } from "../support/gateway.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { type RedisServer, startRedis } from "../support/redis-servers.ts";

interface PasswordCase {
  readonly name: string;
  readonly password: string;
  readonly url: string;
}

const PASSWORDS = JSON.parse(caseBytes("I07/passwords.json").toString()) as PasswordCase[];
const RUN = "11111111-2222-4333-8444-999999999999";

describe("I07: passwords that are not URL-safe", () => {
  let redis: RedisServer;
  let cluster: RedisCluster;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "penstock-i07-"));
    redis = await startRedis();
    cluster = await startRedisCluster({ masters: 3, replicas: 0 });
  });
  afterAll(async () => {
    await redis?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  describe.each(PASSWORDS)("$name", ({ name, password, url }) => {
    it("by the URL", async () => {
      await setPassword([redis], password);
      await expectEventsFlow({ redisUrl: withPort(url, redis.port) }, password, redis);
    });

    it("by user and password from files, as a mounted Secret has them", async () => {
      await setPassword([redis], password);
      const usernameFile = join(folder, `${name}.user`);
      const passwordFile = join(folder, `${name}.password`);
      await writeFile(usernameFile, "stream");
      await writeFile(passwordFile, password);
      const config = { redis: { url: `redis://127.0.0.1:${redis.port}/0`, usernameFile, passwordFile } };
      await expectEventsFlow({ config }, password, redis);
    });

    it("on a cluster", async () => {
      await setPassword(cluster.nodes, password);
      await expectEventsFlow({ redisUrl: withPort(url, cluster.nodes[0]!.port) }, password, cluster.nodes[0]!);
    });
  });

  it("refuses a URL with a raw slash in the password, without printing it or connecting anywhere", async () => {
    // The URL's text before the slash reads as host `stream` and port `aB+`; anything that listens on the loopback would hear of a connection.
    let connections = 0;
    const listener = createServer(() => connections++);
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const url = caseBytes("I07/unencoded-base64.url").toString().trim();
    const { code, logs } = await startFailing({ broker: "redis", redisUrl: withPort(url, portOf(listener)) });
    await new Promise((resolve) => listener.close(resolve));
    expect(code).not.toBe(0);
    const complaint = logs.split("\n").filter((line) => line.includes("Stream broker startup probe failed"));
    expect(complaint).toHaveLength(1);
    expect(logs).toMatch(/URL|BROKER_URL/);
    expect(logs).not.toContain("aB+");
    expect(logs).not.toContain("4g==");
    expect(logs).not.toMatch(/^\s+at /m);
    expect(connections).toBe(0);
  });
});

async function setPassword(servers: readonly RedisServer[], password: string): Promise<void> {
  for (const server of servers) await server.cli("ACL", "SETUSER", "stream", "reset", "on", `>${password}`, "~*", "&*", "+@all");
}

async function expectEventsFlow(options: GatewayOptions, password: string, server: RedisServer): Promise<void> {
  const gateway = await startGateway({ broker: "redis", ...options });
  try {
    const reader = await gateway.stream(RUN);
    const answer = await gateway.publish(RUN, { events: [{ kind: "token", payload: { text: "hello" } }] });
    expect(answer.status).toBe(200);
    await reader.waitFor("the event", () => reader.lastEventId === answer.body.last_id);
    reader.close();
    expect(await server.cli("CLIENT", "LIST")).toContain("user=stream");
    expect(gateway.logs()).not.toContain(password);
    expect(gateway.logs()).not.toContain(encodeURIComponent(password));
  } finally {
    await gateway.stop();
  }
}

function withPort(url: string, port: number): string {
  return url.replace("127.0.0.1:6379", `127.0.0.1:${port}`);
}

function portOf(listener: ReturnType<typeof createServer>): number {
  const address = listener.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
