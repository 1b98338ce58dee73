/**
 * Run by `unshare -n` in a network namespace of its own: a cluster whose replica is cut off for a moment, then its master dies and the
 * replica takes over without the last entries. Prints what a reader heard, as JSON.
 */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { waitFor } from "../support/wait-for.ts";
import { frame, keyOf, publish, Recorder, startBroker } from "./redis-broker.ts";

const REPLICA_SOURCE = "192.0.2.2/32";
const withOthers = process.argv[2] === "others";

execFileSync("ip", ["link", "set", "lo", "up"]);
execFileSync("ip", ["addr", "add", REPLICA_SOURCE, "dev", "lo"]);
const source = ["--bind-source-addr", "192.0.2.2", "--cluster-announce-ip", "127.0.0.1"];
const cluster = await startRedisCluster({ argsOf: (index) => (index < 3 ? [] : source) });
try {
  const tested = await startBroker({ url: cluster.url, socketTimeoutSeconds: 1 });
  const runId = randomUUID();
  const reader = new Recorder();
  tested.broker.watch(runId, reader);
  await reader.until("the tail", () => reader.tail !== null);
  await publish(tested.broker, runId, 20);
  await reader.hear(20);
  const master = await cluster.masterOf(keyOf(runId));
  const masterId = await master.cli("CLUSTER", "MYID");
  let replica = cluster.nodes[0]!;
  for (const node of cluster.nodes) {
    if ((await node.cli("CLUSTER", "NODES")).includes(`myself,slave ${masterId}`)) replica = node;
  }
  await waitFor("the replica has all of it", async () => {
    await replica.cli("READONLY");
    return (await replica.cli("INFO", "replication")).includes("master_link_status:up");
  });
  await waitFor("the offsets agree", async () => {
    const offset = async (node: typeof master): Promise<string | undefined> =>
      /(?:master|slave)_repl_offset:(\d+)/.exec(await node.cli("INFO", "replication"))?.[1];
    return (await offset(master)) === (await offset(replica));
  });
  execFileSync("ip", ["addr", "del", REPLICA_SOURCE, "dev", "lo"]);
  await publish(tested.broker, runId, 10, 20);
  await reader.hear(30);
  const heard = reader.ids.at(-1)!;
  await master.kill9();
  await replica.cli("CLUSTER", "FAILOVER", "TAKEOVER");
  const kept = reader.ids[19]!;
  if (withOthers) {
    // Its clock is behind: it gives ids around those that were lost.
    const [milliseconds, sequence] = kept.split("-");
    for (let number = 0; number < 5; number++) {
      const id = `${milliseconds}-${Number(sequence) + 100 + number}`;
      await replica.cli("XADD", keyOf(runId), id, "p", String(frame(100 + number)));
    }
    await replica.cli("XADD", keyOf(runId), "*", "p", String(frame(105)));
  }
  await waitFor(
    "a publish is taken",
    () => (reader.numbers.includes(200) ? true : publish(tested.broker, runId, 1, 200).then(Boolean, () => false)),
    30_000,
  );
  await reader.until("it is heard", () => reader.numbers.includes(200), 30_000);
  const { gaps, numbers, ids, faults, calls } = reader;
  const page = await tested.broker.readPage(runId, { id: heard, exact: true }, 100);
  console.log(JSON.stringify({ gaps, numbers, ids, faults, calls, kept, heard, pageGap: page.gap }));
  await tested.close();
} finally {
  await cluster.stop();
}
