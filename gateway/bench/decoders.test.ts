import { describe, expect, it } from "vitest";
import { benchEvent } from "./bench-event.ts";
import { FrameDecoder, RunSpelling } from "./frame-decoder.ts";
import { ResponseDecoder } from "./response-decoder.ts";

const RUN = "5d1f7c0e-2b7a-4c61-9d1e-0f6a1b2c3d4e";

/** Everything that one connection is understood to say, in order, when its bytes come in pieces of a size. */
function read(text: string, pieceBytes: number, thenCloses = false): string[] {
  const heard: string[] = [];
  const frames = new FrameDecoder(
    {
      event: (milliseconds, sequence, n, sentMicros) => heard.push(`event ${milliseconds}-${sequence} n=${n} t=${sentMicros}`),
      frame: (name, milliseconds, sequence, data) => heard.push(`${name} ${milliseconds}-${sequence} ${data}`),
      unreadable: (what) => heard.push(`unreadable: ${what}`),
    },
    new RunSpelling(RUN),
  );
  const response = new ResponseDecoder({
    head: (status) => heard.push(`head ${status}`),
    body: (buffer, start, end) => frames.feed(buffer, start, end),
    done: () => heard.push("done"),
    malformed: (what) => heard.push(`malformed: ${what}`),
  });
  const bytes = Buffer.from(text);
  // As on a socket: one buffer for all reads, with what earlier ones left in it.
  const buffer = Buffer.alloc(pieceBytes + 64, "\n");
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const length = bytes.copy(buffer, 0, at, at + pieceBytes);
    response.feed(buffer, 0, length);
  }
  if (thenCloses) heard.push(`closed ${response.close() ? "properly" : "too early"}`);
  return heard;
}

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const event = (n: number, spelled = ""): string =>
  `id: 1700000000000-${n}\nevent: bench\ndata: {"pipeline_run_id":"${RUN}",${spelled}"step_run_id":null,"step_name":null,"kind":"bench","correlation_id":null,"index":null,"payload":{"n":${n},"t":12345,"pad":"xx"}}\n\n`;

const STREAM =
  `${HEAD}Transfer-Encoding: Chunked\r\n\r\n` +
  chunk("retry: 1427\n: ok\n:\n") +
  chunk(event(0) + event(1).slice(0, 50)) +
  `${chunk(event(1).slice(50)).replace("\r\n", ";note=1\r\n")}` +
  chunk(`${event(2, '"more":1,')}id: 1700000000001-0\r\nevent: cursor\r\ndata: {}\r\n\r\n`) +
  chunk("event:gap\ndata:Größe\n\n") +
  "0\r\ntrailer: yes\r\n\r\n";
const UNDERSTOOD = [
  "head 200",
  "event 1700000000000-0 n=0 t=12345",
  "event 1700000000000-1 n=1 t=12345",
  "event 1700000000000-2 n=2 t=12345",
  "cursor 1700000000001-0 {}",
  "gap -1--1 Größe",
  "done",
];

describe("the loader's reader", () => {
  it("understands the same however the bytes are cut", () => {
    for (let size = 1; size <= STREAM.length; size++) expect(read(STREAM, size), `pieces of ${size}`).toEqual(UNDERSTOOD);
  });

  it("reads a body of a given length, and one that ends with the connection", () => {
    const body = event(7);
    const expected = ["head 200", "event 1700000000000-7 n=7 t=12345"];
    expect(read(`${HEAD}content-length: ${body.length}\r\n\r\n${body}`, 10, true)).toEqual([
      ...expected,
      "done",
      "closed properly",
    ]);
    expect(read(`${HEAD}\r\n${body}`, 10, true)).toEqual([...expected, "done", "closed properly"]);
    expect(read("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", 7, true)).toEqual([
      "head 204",
      "done",
      "closed properly",
    ]);
  });

  it("sees that a body was cut", () => {
    expect(read(STREAM.slice(0, -20), 100, true).at(-1)).toBe("closed too early");
    expect(read(`${HEAD}content-length: 99\r\n\r\nabc`, 100, true).at(-1)).toBe("closed too early");
  });

  it.each([
    ["SSH-2.0-OpenSSH_9.2\r\n\r\n", "the answer is not HTTP/1.1"],
    [`${HEAD}transfer-encoding: chunked\r\n\r\nxyz\r\n`, "a chunk's size is no number"],
    [`${HEAD}transfer-encoding: chunked\r\n\r\n\r\n`, "a chunk has no size"],
    [`${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nabcdef\r\n`, "a chunk is longer than its size"],
    ["x".repeat(70_000), "the head has no end"],
  ])("says what is wrong with an answer that breaks HTTP: %j", (text, problem) => {
    expect(read(text, 1_000).at(-1)).toBe(`malformed: ${problem}`);
  });
});

it("an event's payload is as long as it was asked to be, with its number and time in it", () => {
  for (const bytes of [60, 200, 10_000, 65_000]) {
    const { kind, payload } = JSON.parse(benchEvent(12, 345, bytes));
    expect(kind).toBe("bench");
    expect(payload).toMatchObject({ n: 12, t: 345 });
    expect(JSON.stringify(payload)).toHaveLength(bytes);
  }
  expect(JSON.parse(benchEvent(1, 2, 1)).payload).toEqual({ n: 1, t: 2, pad: "" });
});
