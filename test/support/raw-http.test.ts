import { expect, test } from "vitest";
import { decodeChunked, fillTemplate, parseResponses, SseDecoder } from "./raw-http.ts";

const VECTORS: [string, [event: string, data: string, id: string][]][] = [
  ["data: A\r\ndata: B\r\ndata: C\r\n\r\n", [["message", "A\nB\nC", ""]]],
  ["\ufeffdata:x\n\n", [["message", "x", ""]]],
  ["id: 123\nid: bad\0id\ndata: hello\n\n", [["message", "hello", "123"]]],
  [
    "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
    [
      ["message", "a", "1"],
      ["message", "b", "1"],
      ["message", "c", ""],
    ],
  ],
  [
    ": ping\n\nevent: gap\n\ndata\n\ndata: \n\n",
    [
      ["message", "", ""],
      ["message", "", ""],
    ],
  ],
  ['data: {"t":"a\u2028b\u2029c\u0085d\u{1f642}"}\n\n', [["message", '{"t":"a\u2028b\u2029c\u0085d\u{1f642}"}', ""]]],
  ["retry: 1500\nretry: 2x\nevent: end\ndata: {}\n\ndata: unfinished", [["end", "{}", ""]]],
  [
    "data: a\rdata: b\r\rdata: c\n\n",
    [
      ["message", "a\nb", ""],
      ["message", "c", ""],
    ],
  ],
];

test.each(VECTORS)("the decoder reads %j the same at every split", (text, expected) => {
  const bytes = Buffer.from(text);
  for (let split = 0; split <= bytes.length; split++) {
    const decoder = new SseDecoder();
    const events = [...decoder.feed(bytes.subarray(0, split)), ...decoder.feed(bytes.subarray(split))];
    expect(events.map(({ event, data, id }) => [event, data, id])).toEqual(expected);
  }
});

test("a template keeps its bytes, counts its body without pauses, and splits at them", () => {
  const template = Buffer.from(
    "POST {{PUBLISH_PATH}} HTTP/1.1\r\nContent-Length: {{CL}}\r\nX: {{FILL:3}}\r\n\r\né{{PAUSE:20}}\xff",
    "latin1",
  );
  expect(fillTemplate(template, { RUN: "r" })).toEqual([
    Buffer.from("POST /api/v1/runs/r/events HTTP/1.1\r\nContent-Length: 2\r\nX: xxx\r\n\r\né", "latin1"),
    20,
    Buffer.from("\xff", "latin1"),
  ]);
});

test("answers are told apart by their framing, and broken framing is an error", () => {
  const two = Buffer.from(
    "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  );
  const responses = parseResponses(two, { closed: false, head: false });
  expect(responses.map((one) => [one.status, one.body.toString(), one.complete])).toEqual([
    [404, "ab", true],
    [200, "abc", true],
  ]);
  expect(() => decodeChunked(Buffer.from("3\r\nabcConnection: close\r\n"))).toThrow("CRLF");
  expect(() => parseResponses(Buffer.from("junk\r\n\r\n"), { closed: true, head: false })).toThrow("status line");
});
