/**
 * Run by `unshare -m` in a mount namespace of its own, so that names can be changed: all nodes of a cluster are restarted on other
 * addresses behind the same name, one by one. Prints what the readers heard, as JSON.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { freePort } from "../support/redis-servers.ts";
import { waitFor } from "../support/wait-for.ts";
import { publish, Recorder, startBroker } from "./redis-broker.ts";

const directory = mkdtempSync(join(tmpdir(), "penstock-hosts-"));
const hosts = join(directory, "hosts");
writeFileSync(hosts, "");
execFileSync("mount", ["--bind", hosts, "/etc/hosts"]);

const addresses = Array.from({ length: 6 }, (_, index) => `127.0.1.${index + 1}`);
const name = "redis.test";
const writeHosts = (): void => writeFileSync(hosts, `${addresses.map((address) => `${address} ${name}`).join("\n")}\n`);
writeHosts();
const port = await freePort("127.0.1.1");
const args = ["--appendonly", "yes", "--appendfsync", "always"];
const argsAt = (host: string): string[] => ["--cluster-announce-ip", host];
const cluster = await startRedisCluster({ hostOf: (index) => addresses[index]!, port, args, argsAt });
try {
  const tested = await startBroker({ url: `redis://${name}:${port}`, socketTimeoutSeconds: 1 });
  const runs = Array.from({ length: 12 }, () => ({ runId: randomUUID(), reader: new Recorder() }));
  for (const { runId, reader } of runs) tested.broker.watch(runId, reader);
  for (const { reader } of runs) await reader.until("the tail", () => reader.tail !== null);
  const publishAll = async (number: number): Promise<void> => {
    await waitFor(
      `all runs have entry ${number}`,
      async () => {
        const left = runs.filter(({ reader }) => !reader.numbers.includes(number));
        await Promise.allSettled(left.map(({ runId }) => publish(tested.broker, runId, 1, number)));
        return left.length === 0;
      },
      30_000,
    );
  };
  await publishAll(0);
  for (const [index, node] of cluster.nodes.entries()) {
    addresses[index] = `127.0.2.${index + 1}`;
    writeHosts();
    await node.restart({ host: addresses[index]! });
    await cluster.settled();
    await publishAll(index + 1);
  }
  const layout = await cluster.nodes[0]!.cli("CLUSTER", "SLOTS");
  const late = await startBroker({ url: `redis://${name}:${port}`, socketTimeoutSeconds: 1 });
  await waitFor("healthy", () => tested.broker.health().readable && tested.broker.health().writable);
  const heard = runs.map(({ reader }) => ({
    numbers: [...new Set(reader.numbers)],
    gaps: reader.gaps.filter(({ gap }) => gap.reason !== "rollback"),
    rollbacks: reader.gaps.filter(({ gap }) => gap.reason === "rollback").length,
    faults: reader.faults,
  }));
  console.log(
    JSON.stringify({
      heard,
      hasOld: layout.includes("127.0.1."),
      detail: tested.broker.health().detail,
      lines: tested.log.lines.length,
    }),
  );
  await tested.close();
  await late.close();
} finally {
  await cluster.stop();
  rmSync(directory, { recursive: true, force: true });
}
