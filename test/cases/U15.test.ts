/** U15: characters cut in two by the network, and bodies that are no UTF-8. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, type Stage, sendCase, startStage } from "../support/cases.ts";
import type { SseReader } from "../support/sse-reader.ts";

const TEXT = "你好世界🙂é";

describe.each(["memory", "redis"] as const)("U15: characters cut in two, %s broker", (broker) => {
  let stage: Stage;
  let reader: SseReader;

  beforeAll(async () => {
    stage = await startStage(broker);
    reader = await stage.gateway.stream(CASE_RUN);
  });
  afterAll(() => stage.stop());

  it.each(["split-cjk", "split-emoji", "every-byte", "chunked-split"])("%s: the text is equal", async (name) => {
    const before = reader.published.length;
    expect(await answerStatus(name)).toBe(200);
    const event = (await reader.waitForPublished(before + 1))[before];
    expect(textOf(event?.data)).toBe(TEXT);
    expect(reader.text).not.toContain("\ufffd");
  });

  it.each(["ends-inside-char", "invalid-utf8"])("%s is refused, nothing stored", async (name) => {
    const before = await stage.entryCount(CASE_RUN);
    expect(await answerStatus(name)).toBe(400);
    expect(await stage.entryCount(CASE_RUN)).toBe(before);
  });

  it("lone-surrogate comes back as the same escape, or is refused", async () => {
    const before = reader.published.length;
    const status = await answerStatus("lone-surrogate");
    expect([200, 400, 422]).toContain(status);
    if (status === 200) {
      const event = (await reader.waitForPublished(before + 1))[before];
      expect(event?.data).toContain("\\ud83d");
      expect(textOf(event?.data)).toBe("你好世界🙂\ud83d");
    }
  });

  it("bom is refused or accepted as the text behind it", async () => {
    const before = reader.published.length;
    const status = await answerStatus("bom");
    expect([200, 400]).toContain(status);
    if (status === 200) expect(textOf((await reader.waitForPublished(before + 1))[before]?.data)).toBe(TEXT);
  });

  it("latin1-charset is read as UTF-8 all the same, or refused", async () => {
    const before = reader.published.length;
    const status = await answerStatus("latin1-charset");
    expect([200, 415]).toContain(status);
    if (status === 200) expect(textOf((await reader.waitForPublished(before + 1))[before]?.data)).toBe(TEXT);
  });

  async function answerStatus(name: string): Promise<number> {
    const connection = await sendCase(stage.gateway, `U15/${name}.http`);
    const { status } = await connection.response();
    connection.close();
    return status;
  }
});

function textOf(data: string | undefined): string {
  return (JSON.parse(data ?? "") as { payload: { text: string } }).payload.text;
}
