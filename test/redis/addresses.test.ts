import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startRedis } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { publish, Recorder, startBroker, type TestBroker } from "./redis-broker.ts";

async function expectWorking({ broker, close }: TestBroker): Promise<void> {
  const runId = randomUUID();
  const reader = new Recorder();
  broker.watch(runId, reader);
  await publish(broker, runId, 2);
  await reader.hear(2);
  await close();
}

test("a Unix socket, and a database of its number", async () => {
  const local = await startRedis({ args: ["--unixsocket", "redis.sock"] });
  const socket = join(local.directory, "redis.sock");
  await expectWorking(await startBroker({ url: `unix://${socket}?db=3` }));
  expect(await local.cli("INFO", "keyspace")).toMatch(/db3:keys=/);
  await expectWorking(await startBroker({ url: `redis://localhost:${local.port}/4` }));
  expect(await local.cli("INFO", "keyspace")).toMatch(/db4:keys=/);
  await local.stop();
});

test("of several nodes that are no cluster the master is taken, wherever it stands", async () => {
  const master = await startRedis();
  const replica = await startRedis({ args: ["--replicaof", master.host, `${master.port}`] });
  await waitFor("the replica follows", async () => (await replica.cli("ROLE")).includes("connected"));
  const nodes = [`${replica.host}:${replica.port}`, `${master.host}:${master.port}`];
  await expectWorking(await startBroker({ nodes }));
  await expectWorking(await startBroker({ nodes: [`127.0.0.1:1`, ...nodes] }));
  await replica.stop();
  await master.stop();
});

test("where INFO is refused, it is a standalone server, and works", async () => {
  const server = await startRedis();
  await server.cli("ACL", "SETUSER", "plain", "on", ">pw", "~*", "&*", "+@all", "-info", "-cluster");
  await expectWorking(await startBroker({ url: `redis://plain:pw@127.0.0.1:${server.port}` }));
  await server.stop();
});

test("keys with a prefix of one's own, in any letters", async () => {
  const server = await startRedis();
  const runId = randomUUID();
  const { broker, close } = await startBroker({ url: server.url, keyPrefix: "läufe" }, { deploymentId: "eins" });
  const reader = new Recorder();
  broker.watch(runId, reader);
  await publish(broker, runId, 1);
  await server.cli("XADD", `läufe:eins:run:${runId}`, "*", "p", '{"n":1}');
  await reader.hear(2);
  expect(reader.numbers).toEqual([0, 1]);
  await close();
  await server.stop();
});
