/** Each client that people use hears exactly the events, each before the next is published. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { clientPython } from "../support/python.ts";
import type { SseReader } from "../support/sse-reader.ts";
import { waitFor } from "../support/wait-for.ts";
import { FOREIGN_CLIENTS, type Heard } from "./client.ts";

const INSTALL_LIMIT_MS = 600_000;
const EVENTS = 20;

let quiet: Gateway;
let beating: Gateway;

beforeAll(async () => {
  await clientPython();
  quiet = await startGateway();
  beating = await startGateway({ env: { PENSTOCK_STREAMING_HEARTBEAT_SECONDS: "0.3" } });
}, INSTALL_LIMIT_MS);
afterAll(async () => {
  await quiet?.stop();
  await beating?.stop();
});

describe.concurrent.each(FOREIGN_CLIENTS)("$name", ({ name, hearsHeartbeats, open }) => {
  const runId = name.replaceAll(" ", "-");

  it("hears each event before the next is published, then the end, and nothing else", async ({ expect }) => {
    const client = await open(quiet.runUrl(runId, "/events/stream"));
    const texts = Array.from({ length: EVENTS }, (_, n) => `word ${n}\n\u2028 🙂`);
    const ids: string[] = [];
    for (const [n, text] of texts.entries()) {
      ids.push(await publishText(quiet, runId, text));
      await client.untilHeard(n + 1);
    }
    expect((await fetch(quiet.runUrl(runId, "/end"), { method: "POST" })).status).toBe(200);
    await client.untilHeard(EVENTS + 1);
    await client.close();
    const heard = client.heard.slice(0, EVENTS);
    expect(heard.map(({ event, id }) => ({ event, id }))).toEqual(ids.map((id) => ({ event: "token", id })));
    expect(heard.map(textOf)).toEqual(texts);
    expect(client.heard.slice(EVENTS)).toMatchObject([{ event: "end", data: "{}" }]);
  });

  it(`${hearsHeartbeats ? "makes an empty event of a heartbeat, as it is known to" : "hears nothing of heartbeats"}`, async ({
    expect,
  }) => {
    // Its heartbeats come when the client's do, for both streams are idle at the same times.
    const witness = await beating.stream(runId);
    const client = await open(beating.runUrl(runId, "/events/stream"));
    const texts = ["word 0", "word 1", "word 2"];
    for (const text of texts) {
      await heartbeats(witness, 3);
      await publishText(beating, runId, text);
      await waitFor(text, () => client.heard.some((heard) => heard.data !== "" && textOf(heard) === text));
    }
    await heartbeats(witness, 3);
    await fetch(beating.runUrl(runId, "/end"), { method: "POST" });
    await waitFor("the end", () => client.heard.some(({ event }) => event === "end"));
    await client.close();
    const full = client.heard.filter(({ data }) => data !== "");
    expect(full.map(({ event }) => event)).toEqual(["token", "token", "token", "end"]);
    expect(full.slice(0, 3).map(textOf)).toEqual(texts);
    const empty = client.heard.filter(({ data }) => data === "");
    if (hearsHeartbeats) expect(new Set(empty.map(({ event }) => event))).toEqual(new Set(["message"]));
    else expect(empty).toEqual([]);
  });
});

/** Waits for so many more heartbeats. */
async function heartbeats(witness: SseReader, more: number): Promise<void> {
  const before = witness.comments.filter((comment) => comment === "ping").length;
  await witness.waitFor(
    `${more} heartbeats`,
    () => witness.comments.filter((comment) => comment === "ping").length >= before + more,
  );
}

async function publishText(gateway: Gateway, runId: string, text: string): Promise<string> {
  const answer = await gateway.publish(runId, { events: [{ kind: "token", payload: { text } }] });
  if (answer.status !== 200) throw new Error(`the publish was answered ${answer.status} ${answer.text}`);
  return answer.body.last_id ?? "";
}

function textOf({ data }: Heard): string {
  return (JSON.parse(data) as { payload: { text: string } }).payload.text;
}
