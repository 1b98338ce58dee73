import { createParser } from "eventsource-parser";
import { describe, expect, test } from "vitest";
import type { GapReason } from "../../protocol/wire.ts";
import * as frame from "./frame.ts";

describe("the bytes of", () => {
  test.each([
    ["an event", frame.eventFrame("17-0", "token", Buffer.from('{"a":1.0}')), 'id: 17-0\nevent: token\ndata: {"a":1.0}\n\n'],
    ["an event without a kind", frame.eventFrame("17-0", "", Buffer.from("{}")), "id: 17-0\nevent: \ndata: {}\n\n"],
    [
      "an event in any script",
      frame.eventFrame("17-0", "tür中", Buffer.from('{"ü":"😀"}')),
      'id: 17-0\nevent: tür中\ndata: {"ü":"😀"}\n\n',
    ],
    ["a cursor", frame.cursorFrame("17-1"), "id: 17-1\nevent: cursor\ndata: {}\n\n"],
    ["an unknown entry", frame.unknownFrame("17-1", "future"), 'id: 17-1\nevent: cursor\ndata: {"unknown_type": "future"}\n\n'],
    [
      "an unknown entry of an odd type",
      frame.unknownFrame("1-1", 'ü"\n\u007f😀'),
      'id: 1-1\nevent: cursor\ndata: {"unknown_type": "\\u00fc\\"\\n\\u007f\\ud83d\\ude00"}\n\n',
    ],
    ["the end", frame.END_FRAME, "retry: 3600000\nevent: end\ndata: {}\n\n"],
    ["the end at a shutdown, as ZenML has it", frame.SHUTDOWN_END_FRAME, "event: end\ndata: {}\n\n"],
    ["an error", frame.STREAM_FAILED_FRAME, 'event: error\ndata: {"reason":"stream_failed"}\n\n'],
    ["a right that has ended", frame.UNAUTHORIZED_FRAME, 'event: error\ndata: {"reason":"unauthorized"}\n\n'],
    ["a heartbeat", frame.PING_FRAME, ": ping\n\n"],
    ["the opening", frame.openingLines(1234), "retry: 1234\n: ok\n"],
    ["a retry", frame.retryLine(2000), "retry: 2000\n"],
    [
      "a gap with all that is known",
      frame.gapFrame({ reason: "retention", from: "17-1", to: "17-9", missed: 7 }),
      'event: gap\ndata: {"reason": "retention", "from": "17-1", "to": "17-9", "missed": 7}\n\n',
    ],
    [
      "a gap with nothing known",
      frame.gapFrame({ reason: "outage", from: null, to: null, missed: null }),
      'event: gap\ndata: {"reason": "outage", "from": null, "to": null, "missed": null}\n\n',
    ],
  ])("%s", (_name, bytes, text) => {
    expect(bytes.toString()).toBe(text);
  });

  test("whatever is decoded", () => {
    const event = { type: "event", kind: "k", stepName: null, correlationId: null, data: Buffer.from("{}") } as const;
    expect(frame.encodeFrame("1-0", event)).toEqual(frame.eventFrame("1-0", "k", Buffer.from("{}")));
    expect(frame.encodeFrame("1-0", { type: "unknown", unknownType: "?" })).toEqual(frame.unknownFrame("1-0", "?"));
  });
});

describe("a parser of event streams", () => {
  test("hears each frame once, and nothing from the lines around them", () => {
    const events: unknown[] = [];
    const retries: number[] = [];
    const parser = createParser({ onEvent: (event) => events.push(event), onRetry: (ms) => retries.push(ms) });
    const gap = { reason: "overflow" as GapReason, from: null, to: null, missed: null };
    const parts = [
      frame.openingLines(1500),
      frame.PING_FRAME,
      frame.eventFrame("1-0", "tok: x", Buffer.from('{"t":"\\u2028"}')),
      frame.gapFrame(gap),
      frame.cursorFrame("1-1"),
      frame.PING_FRAME,
      frame.END_FRAME,
      frame.retryLine(777),
    ];
    parser.feed(Buffer.concat(parts).toString());
    expect(events).toEqual([
      { id: "1-0", event: "tok: x", data: '{"t":"\\u2028"}' },
      { id: undefined, event: "gap", data: JSON.stringify(gap).replaceAll(":", ": ").replaceAll(",", ", ") },
      { id: "1-1", event: "cursor", data: "{}" },
      { id: undefined, event: "end", data: "{}" },
    ]);
    expect(retries).toEqual([1500, 3_600_000, 777]);
  });
});
