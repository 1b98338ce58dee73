/** S03: U+2028, U+2029 and U+0085 are taken for line ends by some clients; their text must come through all the same. */

import { fileURLToPath } from "node:url";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, caseBytes, type Stage, startStage, statusOf } from "../support/cases.ts";
import { LineProcess } from "../support/line-process.ts";
import { clientPython, oldHttpxSsePython } from "../support/python.ts";

const HTTPX_SSE = fileURLToPath(new URL("../clients/httpx_sse_client.py", import.meta.url));
const INSTALL_LIMIT_MS = 600_000;

interface Heard {
  readonly data: string;
}

describe.each(["memory", "redis"] as const)("S03: characters that look like line ends, %s broker", (broker) => {
  let stage: Stage;
  const texts = publishedTexts();

  beforeAll(async () => {
    stage = await startStage(broker);
    expect(await statusOf(stage.gateway, "S03/publish.http")).toBe(200);
  });
  afterAll(() => stage.stop());

  it("is a case with all of them", () => {
    for (const character of ["\u2028", "\u2029", "\u0085", "\v", "\f", "\u{1f642}"]) expect(texts[0]).toContain(character);
  });

  it("gives back the same text to a decoder of the standard, and sends escapes only", async () => {
    const reader = await stage.gateway.stream(CASE_RUN);
    await reader.waitForPublished(2);
    expect(reader.payloads).toEqual(texts.map((text) => ({ text })));
    for (const character of ["\u2028", "\u2029", "\u0085", "\v", "\f"]) expect(reader.text).not.toContain(character);
    expect(reader.text).toContain("\\u2028");
    reader.close();
  });

  it("gives back the same text to eventsource-parser", async () => {
    const abort = new AbortController();
    const response = await fetch(stage.gateway.runUrl(CASE_RUN, "/events/stream"), { signal: abort.signal });
    const messages: EventSourceMessage[] = [];
    const parser = createParser({ onEvent: (message) => messages.push(message) });
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      parser.feed(text);
      if (messages.length >= 2) break;
    }
    abort.abort();
    expect(messages.map(({ data }) => textOf(data))).toEqual(texts);
  });

  it.each([
    ["httpx-sse", clientPython],
    ["httpx-sse 0.4.1, which splits at U+2028", oldHttpxSsePython],
  ])(
    "gives back the same text to %s",
    async (_name, pythonOf) => {
      const python = await pythonOf();
      expect(python, "needs python3 of 3.10 or later with venv").not.toBeNull();
      const client = new LineProcess<Heard>(python!, [HTTPX_SSE, stage.gateway.runUrl(CASE_RUN, "/events/stream")]);
      const heard = await client.untilCount(2);
      await client.stop();
      expect(heard.map(({ data }) => textOf(data))).toEqual(texts);
    },
    INSTALL_LIMIT_MS,
  );
});

function publishedTexts(): string[] {
  const request = caseBytes("S03/publish.http").toString("utf8");
  const body = request.slice(request.indexOf("\r\n\r\n") + 4);
  return (JSON.parse(body) as { events: { payload: { text: string } }[] }).events.map(({ payload }) => payload.text);
}

function textOf(data: string): string {
  return (JSON.parse(data) as { payload: { text: string } }).payload.text;
}
