/** R01: a position that was trimmed away is told by a gap, to one who comes back and to one who is behind. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, type Stage, seedRedis, sendCase, startStage, streamKey } from "../support/cases.ts";
import { RawConnection } from "../support/raw-http.ts";
import { waitFor } from "../support/wait-for.ts";

const RETENTION_GAPS = 'penstock_gaps_total{reason="retention"}';
const SLOW_RUN = "11111111-2222-4333-8444-777777777777";

describe("R01: trimmed positions", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("redis", { config: { flow: { ring: { events: 16 } } } });
    await seedRedis(stage.redis!, "R01/seed.redis", CASE_RUN);
  });
  afterAll(() => stage.stop());

  it("old-position: a gap first, then what is kept, and the counter goes up by one", async () => {
    const before = await retentionGaps();
    const connection = await sendCase(stage.gateway, "R01/old-position.http");
    const events = await connection.untilEvents(4);
    connection.close();
    expect(connection.body.toString()).toMatch(/^retry: \d+\n: ok\n(:\n)*event: gap\ndata: \{"reason": "retention"/);
    expect(events.map(({ event, id }) => [event, id])).toEqual([
      ["gap", ""],
      ["token", "1700000000003-0"],
      ["token", "1700000000004-0"],
      ["token", "1700000000005-0"],
    ]);
    expect(JSON.parse(events[0]!.data)).toEqual({
      reason: "retention",
      from: "1700000000000-0",
      to: "1700000000003-0",
      missed: expect.toSatisfy((missed: unknown) => missed === null || missed === 2),
    });
    expect(await stage.gateway.waitForMetric(RETENTION_GAPS, (value) => value > before)).toBe(before + 1);
  });

  it("inside: what follows, without a gap", async () => {
    const connection = await sendCase(stage.gateway, "R01/inside.http");
    const events = await connection.untilEvents(1);
    connection.close();
    expect(events.map(({ event, id }) => [event, id])).toEqual([["token", "1700000000005-0"]]);
  });

  it("fresh: no position means from the oldest kept, which misses nothing that was asked for", async () => {
    const connection = await sendCase(stage.gateway, "R01/fresh.http");
    const events = await connection.untilEvents(3);
    connection.close();
    expect(events.map(({ id }) => id)).toEqual(["1700000000003-0", "1700000000004-0", "1700000000005-0"]);
  });

  it("tells a reader that is behind while the stream is trimmed", async () => {
    const before = await retentionGaps();
    const connection = await RawConnection.open(stage.gateway.port);
    await connection.send(`GET /api/v1/runs/${SLOW_RUN}/events/stream HTTP/1.1\r\nHost: gateway.test\r\n\r\n`);
    await connection.head();
    connection.socket.pause();
    // More than the kernel takes for a reader that stands still, and than the ring of 16 events.
    const text = "x".repeat(60_000);
    for (let n = 0; n < 50; n++) {
      const events = Array.from({ length: 8 }, (_, i) => ({ kind: "blob", payload: { n: n * 8 + i, text } }));
      expect((await stage.gateway.publish(SLOW_RUN, { events })).status).toBe(200);
    }
    await stage.gateway.waitForMetric("penstock_backpressure_total", (value) => value > 0);
    await stage.redis!.cli("XTRIM", streamKey(SLOW_RUN), "MAXLEN", "=", "3");
    connection.socket.resume();
    await waitFor("the last event", () => connection.bytes.includes(Buffer.from('"n":399,')));
    await connection.untilEvents(4);
    const heard = connection.events.map(({ event, data }) => (event === "blob" ? numberOf(data) : event));
    connection.close();

    const at = heard.indexOf("gap");
    expect(heard.filter((each) => each === "gap")).toHaveLength(1);
    const beforeGap = heard.slice(0, at);
    const afterGap = heard.slice(at + 1);
    expect(beforeGap).toEqual(beforeGap.map((_, index) => index));
    // The ring may have kept some that Redis has not.
    expect(afterGap).toEqual(Array.from({ length: afterGap.length }, (_, index) => 400 - afterGap.length + index));
    expect(afterGap.length).toBeGreaterThanOrEqual(3);
    expect(beforeGap.length + afterGap.length).toBeLessThan(400);
    const gap = JSON.parse(connection.events[at]!.data) as { reason: string; missed: number | null };
    expect(gap.reason).toBe("retention");
    if (gap.missed !== null) expect(gap.missed).toBe(400 - beforeGap.length - afterGap.length);
    expect(await retentionGaps()).toBe(before + 1);
  });

  async function retentionGaps(): Promise<number> {
    return (await stage.gateway.metrics()).get(RETENTION_GAPS) ?? 0;
  }
});

function numberOf(data: string): number {
  return (JSON.parse(data) as { payload: { n: number } }).payload.n;
}
