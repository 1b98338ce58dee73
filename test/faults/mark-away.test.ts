/** The mark of a run's end lies on a master that does not answer; the run itself lies on another, and is served. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { streamKey } from "../support/cases.ts";
import { DEPLOYMENT_ID, type Gateway, startGateway } from "../support/gateway.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import type { RedisServer } from "../support/redis-servers.ts";
import { Follower } from "./follower.ts";
import { batch } from "./producer.ts";

const RECOVERY_MS = 45_000;

let cluster: RedisCluster;
let gateway: Gateway;

beforeAll(async () => {
  // The frozen master is not declared dead meanwhile: this is not about failover.
  const args = ["--cluster-require-full-coverage", "no"];
  cluster = await startRedisCluster({ masters: 3, replicas: 1, nodeTimeoutMs: 60_000, args });
  // A small ring, so that who comes late needs pages of history.
  const flags = ["--heartbeat-seconds", "1", "--ring-events", "4"];
  gateway = await startGateway({ broker: "redis", redisUrl: cluster.url, flags });
}, 60_000);
afterAll(async () => {
  await gateway?.stop();
  await cluster?.stop();
});

test("new streams are served at once, and hear of the end when the mark can be read", { timeout: 120_000 }, async () => {
  const away = (await cluster.masters()).find((node) => node !== cluster.nodes[0])!;
  const [live, fresh, ending, over] = await runsWithMarkOn(away, 4);
  const publish = async (runId: string, n: number, count = 1): Promise<number> =>
    (await gateway.publish(runId, batch(n, count))).status;
  const end = async (runId: string): Promise<number> => (await fetch(gateway.runUrl(runId, "/end"), { method: "POST" })).status;
  const followers: Follower[] = [];
  const follow = (runId: string, query = "", lastEventId = ""): Follower => {
    const follower = new Follower(runId, () => gateway.url, { query, lastEventId });
    followers.push(follower);
    return follower;
  };

  expect([await publish(live, 0, 40), await publish(ending, 0)]).toEqual([200, 200]);
  // Of this one nothing is left but the mark.
  const { last_id: lastId } = (await gateway.publish(over, batch(0, 2))).body;
  expect(await end(over)).toBe(200);
  await cluster.cli("DEL", streamKey(over));

  away.pause();
  const here = [follow(live), follow(live, "?tail=8"), follow(fresh), follow(ending)];
  const late = [follow(over), follow(over, "", lastId!), follow(over, "?since=1-0")];
  await here[0]!.untilAll(40, 10_000);
  await here[1]!.until("the last eight", () => here[1]!.numbers.length === 8, 10_000);
  await here[3]!.untilAll(1, 10_000);
  expect([await publish(live, 40), await publish(fresh, 0)]).toEqual([200, 200]);
  await here[0]!.untilAll(41, 10_000);
  await here[1]!.until("the next event", () => here[1]!.numbers.includes(40), 10_000);
  await here[2]!.untilAll(1, 10_000);
  // The end entry itself says enough.
  expect(await end(ending)).toBe(200);
  await here[3]!.until("the end", () => here[3]!.ended, 10_000);
  for (const reader of late) await reader.until("heartbeats", () => reader.heartbeats > 2, 10_000);
  // Another look, now that the gateway has found out that the master is away.
  const again = follow(live);
  await again.untilAll(41, 10_000);
  for (const reader of [...here, again]) expect(reader.gaps, reader.story()).toEqual([]);
  for (const reader of late) expect([reader.ended, reader.reasons.includes("outage")], reader.story()).toEqual([false, false]);

  away.resume();
  for (const reader of late) await reader.until("the end", () => reader.ended, RECOVERY_MS);
  // Those who gave a place hear of what is gone, at the latest before the end.
  for (const reader of late) expect(new Set(["retention", ...reader.reasons]), reader.story()).toEqual(new Set(["retention"]));
  for (const reader of late.slice(1)) expect(reader.reasons, reader.story()).toContain("retention");
  for (const reader of followers) {
    expect(reader.faults).toEqual([]);
    expect(reader.connects).toBe(1);
    await reader.stop();
  }
});

/** Names of runs whose mark lies there, and whose stream does not. */
async function runsWithMarkOn(away: RedisServer, count: 4): Promise<[string, string, string, string]> {
  const found: string[] = [];
  for (let index = 0; found.length < count; index++) {
    const runId = `run-${index}`;
    const mark = `zenml:stream:server:${DEPLOYMENT_ID}:ended:${runId}`;
    const [run, ended] = [await cluster.masterOf(streamKey(runId)), await cluster.masterOf(mark)];
    if (run !== away && ended === away) found.push(runId);
  }
  return found as [string, string, string, string];
}
