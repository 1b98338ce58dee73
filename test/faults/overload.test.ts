/** A gateway that runs out of memory: what it does for those who are well, and to those who take too much; and that it comes back. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { openStream } from "../support/sse-reader.ts";
import { waitFor } from "../support/wait-for.ts";
import { Follower } from "./follower.ts";
import { PacedReader } from "./paced-reader.ts";
import { batch, publishSurely } from "./producer.ts";
import { untilReadiness } from "./readiness.ts";

const MIB = 2 ** 20;
const LIMIT_MIB = 256;
/** Of what is published to other runs, more than there is room for beside what a worker needs anyway. */
const BALLAST_MIB = 200;
const TTL_SECONDS = 8;
/** More than both kernels' buffers hold for one connection. */
const EVENTS = 240;
const PADDING = 60_000;
const STALLED = 3;
const RUN_ID = "watched";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({
    flags: ["--idle-grace-seconds", "1"],
    config: {
      overload: { memoryLimitBytes: LIMIT_MIB * MIB },
      memory: { totalBytes: 1_024 * MIB, maxStreamLength: 1_000_000, streamTtlSeconds: TTL_SECONDS },
    },
  });
});
afterAll(() => gateway?.stop());

test("it drops who does not read, refuses who is new, and serves who is there; then it recovers", {
  timeout: 60_000,
}, async () => {
  const healthy = new Follower(RUN_ID, () => gateway.url);
  await healthy.connected();
  const stalled: PacedReader[] = [];
  for (let n = 0; n < STALLED; n++) stalled.push(await PacedReader.open(gateway, RUN_ID));
  let published = 0;
  const publish = async (count: number, padding = 0): Promise<void> => {
    await publishSurely(() => gateway, RUN_ID, batch(published, count, { padding }));
    published += count;
  };
  while (published < EVENTS) await publish(20, PADDING);
  await gateway.waitForMetric("penstock_backpressure_total", (count) => count >= STALLED);
  const level = 'penstock_overload_level{worker="0"}';
  expect((await gateway.metrics()).get(level)).toBe(0);

  for (let run = 0; run < BALLAST_MIB / 10; run++)
    await publishSurely(() => gateway, `ballast-${run}`, batch(0, 160, { padding: 65_000 }));
  await gateway.waitForMetric(level, (value) => value === 5);

  await untilReadiness(gateway, 503);
  const readiness = await fetch(`http://127.0.0.1:${gateway.adminPort}/readyz`);
  expect(await readiness.text()).toMatch(/overloaded: \d+ % of 256 MiB of memory is used/);
  const refused = await fetch(gateway.runUrl(RUN_ID, "/events/stream"));
  expect(refused.status).toBe(503);
  expect(["1", "2", "3", "4", "5"]).toContain(refused.headers.get("retry-after"));
  expect(await refused.json()).toEqual({ detail: expect.stringContaining("too much to do") as string });
  await publish(1);

  await gateway.waitForMetric('penstock_connections_closed_total{reason="overload"}', (count) => count >= 1);
  for (const reader of stalled) reader.read();
  await waitFor("one is told", () => stalled.some(({ gaps, isOver }) => gaps.length === 1 && isOver));
  const dropped = stalled.find(({ gaps }) => gaps.length === 1)!;
  expect(dropped).toMatchObject({ faults: [], isBroken: false, hasEnd: false });
  expect(dropped.gaps).toEqual([{ reason: "overflow", from: dropped.lastEventId, to: null, missed: null }]);

  await publish(1);
  await healthy.untilAll(published);
  // What made it heavy expires. It is told so by nobody, and makes no garbage that would let it notice.
  await gateway.waitForMetric(level, (value) => value === 0, 40_000);
  await untilReadiness(gateway, 200);
  const again = await openStream(gateway.runUrl(RUN_ID, "/events/stream"));
  expect(again.status).toBe(200);
  again.close();
  await publish(1);
  await healthy.untilAll(published);
  expect(healthy).toMatchObject({ gaps: [], faults: [], connects: 1, refusals: 0 });
  await healthy.stop();
  for (const reader of stalled) reader.close();

  const metrics = await gateway.metrics();
  for (const step of ["shrink_rings", "widen_coalescing", "drop_slowest", "refuse_new", "readiness_off"]) {
    expect(metrics.get(`penstock_overload_steps_total{step="${step}"}`), step).toBeGreaterThanOrEqual(1);
    const lines = gateway
      .logs()
      .split("\n")
      .filter((line) => line.includes(`"step":"${step}"`));
    expect(lines.length, `${step} has a line up and a line down`).toBeGreaterThanOrEqual(2);
  }
  expect(metrics.get('penstock_connections_rejected_total{reason="overload"}')).toBeGreaterThanOrEqual(1);
});
