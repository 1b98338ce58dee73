/** The parts of the page that need no browser: the decoder, the check of the token indexes, what a filter hides. */
import { describe, expect, it } from "vitest";

// Through a variable: the page's files are plain JavaScript, which the compiler does not look at.
const page = new URL("page/", import.meta.url).href;
const { FrameDecoder } = await import(`${page}reader.js`);
const { hidesAllTokens, hidesTokensOf } = await import(`${page}filter.js`);
const { SequenceCheck } = await import(`${page}sequence.js`);

describe("the page's decoder", () => {
  it("reads a stream the same way however it is cut into pieces", () => {
    const stream =
      "retry: 1200\n: ok\nid: 5-0\nevent: token\ndata: {\ndata: }\n\n: ping\n\nid: 6-0\r\ndata:x\r\n\r\nevent: gap\rdata: y\r\rid: 7-0\n";
    const frames = [
      { id: "5-0", event: "token", data: "{\n}" },
      { id: "6-0", event: "message", data: "x" },
      { id: "6-0", event: "gap", data: "y" },
    ];
    for (let first = 0; first <= stream.length; first++) {
      for (let second = first; second <= stream.length; second++) {
        const decoder = new FrameDecoder("4-0");
        const pieces = [stream.slice(0, first), stream.slice(first, second), stream.slice(second)];
        expect(pieces.flatMap((piece) => decoder.push(piece))).toEqual(frames);
        expect(decoder.retryMs).toBe(1200);
      }
    }
  });

  it("keeps the position that it started from until an id comes", () => {
    const decoder = new FrameDecoder("4-0");
    expect(decoder.push('event: gap\ndata: {"reason": "outage"}\n\n')).toEqual([
      { id: "4-0", event: "gap", data: '{"reason": "outage"}' },
    ]);
  });
});

describe("the page's check of token indexes", () => {
  it("finds nothing wrong with a whole generation, or with one that it joined late", () => {
    const check = new SequenceCheck();
    check.begin("answer-2");
    for (const index of [0, 1, 2]) check.token("answer-2", index);
    for (const index of [40, 41]) check.token("answer-1", index);
    check.finish("answer-2", 3);
    check.finish("answer-1", 42);
    expect([check.lost, check.doubled]).toEqual([0, 0]);
  });

  it("counts tokens that are missing at the beginning, in the middle and at the end", () => {
    const check = new SequenceCheck();
    check.begin("answer-1");
    for (const index of [1, 4]) check.token("answer-1", index);
    check.finish("answer-1", 7);
    expect([check.lost, check.doubled]).toEqual([5, 0]);
  });

  it("counts tokens that come twice", () => {
    const check = new SequenceCheck();
    for (const index of [7, 8, 8, 7, 9]) check.token("answer-1", index);
    expect([check.lost, check.doubled]).toEqual([0, 2]);
  });
});

describe("what a filter hides", () => {
  it.each([
    ["", false, false],
    ["kinds=token", false, false],
    ["kinds=step&kinds=token", false, false],
    ["kinds=step&kinds=usage", true, true],
    ["step_names=retrieve", true, true],
    ["step_names=generate", false, true],
    ["step_names=suggest", true, false],
    ["correlation_ids=answer-3", false, true],
    ["step_names=generate&correlation_ids=follow-up-3", true, true],
  ])("%s", (query, answer, followUp) => {
    const filter = new URLSearchParams(query);
    expect([hidesTokensOf("generate", filter), hidesTokensOf("suggest", filter)]).toEqual([answer, followUp]);
    expect(hidesAllTokens(filter)).toBe(answer && followUp);
  });
});
