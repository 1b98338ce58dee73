/** Law 7 (docs/architecture.md): ports that are taken, and workers that are full. */
import { createServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { startTestServer, TEST_SETTINGS, type TestServer } from "../../test/support/http-server.ts";
import { RawConnection, sendRaw } from "../../test/support/raw-http.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { createApp } from "./engine.ts";
import { Listener } from "./listener.ts";
import { affordableConnections, openFilesLimit } from "./open-files.ts";

const gateways: TestServer[] = [];

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

async function start(maxConnections = TEST_SETTINGS.maxConnections): Promise<TestServer> {
  const gateway = await startTestServer({ settings: { maxConnections } });
  gateways.push(gateway);
  return gateway;
}

const INFO = "GET /api/v1/info HTTP/1.1\r\nHost: a\r\n\r\n";

async function answers(port: number): Promise<boolean> {
  try {
    const connection = await sendRaw(port, INFO);
    const { status } = await connection.response({ limitMs: 2_000 });
    connection.close();
    return status === 200;
  } catch {
    return false;
  }
}

function another(): Listener {
  const log = { info() {}, warn() {}, error() {} };
  return new Listener(createApp(), { maxConnections: 10, sharePort: false, log });
}

test("a port that another server of the same engine has is not shared with it", async () => {
  const { port } = await start();
  await expect(another().listen("127.0.0.1", port)).rejects.toMatchObject({
    code: "PENSTOCK_LISTEN",
    message: expect.stringContaining("--port"),
  });
});

test("a port that a stranger has is named, with the flag that chooses another", async () => {
  const stranger = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => stranger.once("listening", resolve));
  const { port } = stranger.address() as { port: number };
  await expect(another().listen("127.0.0.1", port)).rejects.toThrow(new RegExp(`127\\.0\\.0\\.1:${port} is taken .*--port`));
  stranger.close();
});

test("an address that is not this machine's is named, with the flag that chooses another", async () => {
  await expect(another().listen("192.0.2.1", 1)).rejects.toThrow(/192\.0\.2\.1:1 .*--host/);
});

test("a full worker takes no connection until one in ten has gone, and those that are there go on", async () => {
  const gateway = await start(10);
  const clients: RawConnection[] = [];
  for (let n = 0; n < 10; n++) {
    const client = await sendRaw(gateway.port, INFO);
    await client.response();
    clients.push(client);
  }
  expect(gateway.server.connections).toBe(10);
  expect(await answers(gateway.port)).toBe(false);
  await clients[9]!.send(INFO);
  expect(await clients[9]!.responses(2)).toHaveLength(2);

  clients[0]!.close();
  await waitFor("a place is free again", () => answers(gateway.port));
  for (const client of clients) client.close();
});

test("a storm of connections on a full worker is turned away, and none beyond its limit is held", async () => {
  const gateway = await start(5);
  const clients = await Promise.allSettled(Array.from({ length: 40 }, () => RawConnection.open(gateway.port)));
  await waitFor("the limit is reached", () => gateway.server.connections === 5);
  for (const client of clients) if (client.status === "fulfilled") client.value.close();
  await waitFor("all have gone", () => gateway.server.connections === 0);
  await waitFor("a place is free again", () => answers(gateway.port));
});

test("accepting can pause and go on; after the drain has begun it does not come back, and every answer closes", async () => {
  const gateway = await start();
  gateway.server.pauseAccepting();
  expect(await answers(gateway.port)).toBe(false);
  gateway.server.resumeAccepting();
  expect(await answers(gateway.port)).toBe(true);

  const kept = await sendRaw(gateway.port, INFO);
  await kept.response();
  gateway.server.startDraining();
  gateway.server.resumeAccepting();
  expect(await answers(gateway.port)).toBe(false);
  await kept.send(INFO);
  await kept.untilClosed();
  const [, last] = await kept.responses(2);
  expect(last!.headers).toContainEqual(["connection", "close"]);
});

test("a worker takes no more connections than it has descriptors for", () => {
  expect(affordableConnections(18_000, null)).toBe(18_000);
  expect(affordableConnections(18_000, 1_048_576)).toBe(18_000);
  expect(affordableConnections(18_000, 20_000)).toBe(18_000);
  expect(affordableConnections(18_000, 1_024)).toBe(512);
  expect(affordableConnections(18_000, 100)).toBe(50);
  expect(openFilesLimit("/nowhere")).toBeNull();
});
