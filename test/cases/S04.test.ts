/** S04: only a real position, from which one can resume, is sent as an id. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareEventIds } from "../../protocol/event-id.ts";
import { CASE_RUN, caseBytes, type Stage, startStage, streamKey } from "../support/cases.ts";
import type { SseReader } from "../support/sse-reader.ts";

const FILTER = "?kinds=token";
const SHORT = { PENSTOCK_STREAMING_HEARTBEAT_SECONDS: "0.3", PENSTOCK_STREAMING_IDLE_GRACE_SECONDS: "0.1" };

describe("S04: ids on the wire", () => {
  let stage: Stage;
  const entryIds = new Set<string>();

  beforeAll(async () => {
    stage = await startStage("redis", { env: SHORT });
  });
  afterAll(() => stage.stop());

  it("moves a filtered reader on by a cursor with the id of the last event it did not see", async () => {
    const reader = await stage.gateway.stream(CASE_RUN, FILTER);
    const { last_id: lastId } = await publishBatch(0);
    await reader.waitFor("the cursor behind the last event", () => reader.lastEventId === lastId);
    await reader.waitFor("two heartbeats", () => reader.comments.filter((comment) => comment === "ping").length >= 2);
    expect(reader.payloads).toEqual([{ text: "t0" }, { text: "t3" }]);
    expectRealIds(reader);
    reader.close();
  });

  it("sends a gap and an end without an id, and every id is that of an entry", async () => {
    const held = await currentLastId();
    const reader = await stage.gateway.stream(CASE_RUN, FILTER, { lastEventId: held });
    await publishBatch(1);
    await reader.waitForPublished(2);
    const position = reader.lastEventId;
    reader.close();

    // The ring still has all of it until the idle grace is over; only then is the trimmed part lost.
    await stage.gateway.waitForMetric("penstock_runs", (runs) => runs === 0);
    await publishBatch(2);
    await stage.redis!.cli("XTRIM", streamKey(CASE_RUN), "MAXLEN", "=", "4");
    const resumed = await stage.gateway.stream(CASE_RUN, FILTER, { lastEventId: position });
    await resumed.waitForPublished(1);
    await fetch(stage.gateway.runUrl(CASE_RUN, "/end"), { method: "POST" });
    await resumed.waitForEnd();
    expect(resumed.events[0]).toMatchObject({ event: "gap", id: null });
    expect(resumed.gaps).toMatchObject([{ reason: "retention", from: position }]);
    expect(resumed.events.at(-1)).toMatchObject({ event: "end", id: null, data: "{}" });
    expect(resumed.payloads).toEqual([{ text: "t13" }]);
    await noteIds();
    expectRealIds(resumed);
  });

  it("gives a reader that comes back with its last id each event once", async () => {
    const runId = "11111111-2222-4333-8444-666666666666";
    const ids: string[] = [];
    let position: string | undefined;
    const texts: unknown[] = [];
    for (let round = 0; round < 4; round++) {
      const reader = await stage.gateway.stream(runId, FILTER, position === undefined ? {} : { lastEventId: position });
      for (let index = 0; index < 5; index++) {
        const kind = index % 2 === 0 ? "token" : "log";
        const answer = await stage.gateway.publish(runId, { events: [{ kind, payload: { n: round * 5 + index } }] });
        ids.push(answer.body.last_id ?? "");
      }
      // The third token of each round; what follows it comes, or not, before the cut.
      await reader.waitForPublished(3);
      position = reader.lastEventId;
      texts.push(...reader.payloads);
      for (const id of reader.ids) expect(ids).toContain(id);
      reader.close();
    }
    expect(texts).toEqual([0, 2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 19].map((n) => ({ n })));
  });

  async function publishBatch(round: number): Promise<{ last_id?: string | null }> {
    const batch = JSON.parse(caseBytes("S04/batch.json").toString()) as { events: { payload: { text: string } }[] };
    batch.events.forEach((event, index) => {
      event.payload.text = `t${round * 5 + index}`;
    });
    const answer = await stage.gateway.publish(CASE_RUN, batch);
    expect(answer.status).toBe(200);
    await noteIds();
    return answer.body;
  }

  async function noteIds(): Promise<void> {
    const lines = (await stage.redis!.cli("XRANGE", streamKey(CASE_RUN), "-", "+")).split("\n");
    for (const line of lines) if (/^\d+-\d+$/.test(line)) entryIds.add(line);
  }

  async function currentLastId(): Promise<string> {
    const lines = (await stage.redis!.cli("XREVRANGE", streamKey(CASE_RUN), "+", "-", "COUNT", "1")).split("\n");
    return lines[0] ?? "";
  }

  function expectRealIds(reader: SseReader): void {
    for (const id of reader.ids) expect(entryIds).toContain(id);
    for (let index = 1; index < reader.ids.length; index++) {
      expect(compareEventIds(reader.ids[index]!, reader.ids[index - 1]!)).toBeGreaterThan(0);
    }
    // An id field, even an empty one, belongs to events and cursors only.
    for (const { event, id } of reader.events) expect(id === null).toBe(["gap", "end", "error"].includes(event));
    expect(reader.text).not.toMatch(/^: ping\n(?!\n)/m);
  }
});
