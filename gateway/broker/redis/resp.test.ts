import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bulk, encodeCommand } from "./connection.ts";
import { type Reply, ReplyError, ReplyReader } from "./resp.ts";

function read(...chunks: Buffer[]): Reply[] {
  const replies: Reply[] = [];
  const reader = new ReplyReader((reply) => replies.push(reply));
  for (const chunk of chunks) reader.push(chunk);
  return replies;
}

function encode(value: Reply): Buffer {
  if (value === null) return Buffer.from("$-1\r\n");
  if (typeof value === "number") return Buffer.from(`:${value}\r\n`);
  if (typeof value === "string") return Buffer.from(`+${value}\r\n`);
  if (value instanceof ReplyError) return Buffer.from(`-${value.message}\r\n`);
  if (Buffer.isBuffer(value)) return Buffer.concat([Buffer.from(`$${value.length}\r\n`), value, Buffer.from("\r\n")]);
  return Buffer.concat([Buffer.from(`*${value.length}\r\n`), ...value.map(encode)]);
}

const line = fc.string({ unit: "grapheme-ascii", maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, " "));
const { reply } = fc.letrec<{ reply: Reply }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.maxSafeInteger(),
    line,
    line.map((text) => new ReplyError(`ERR ${text}`)),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.array(tie("reply"), { maxLength: 4 }),
  ),
}));

describe("replies", () => {
  test("are the same wherever the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(reply, { minLength: 1, maxLength: 5 }), fc.array(fc.nat(), { maxLength: 12 }), (replies, cuts) => {
        const bytes = Buffer.concat(replies.map(encode));
        const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
        const chunks = [0, ...places].map((place, index) => bytes.subarray(place, places[index] ?? bytes.length));
        expect(read(...chunks)).toEqual(replies);
      }),
    );
  });

  test("are the same when every byte comes by itself", () => {
    fc.assert(
      fc.property(reply, (value) => {
        const bytes = encode(value);
        expect(read(...Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual([value]);
      }),
    );
  });

  test("hold a long bulk string that comes in many chunks", () => {
    const long = Buffer.alloc(300_000, "abc");
    const bytes = encode([long, 1]);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, n) =>
      bytes.subarray(n * 65_536, (n + 1) * 65_536),
    );
    expect(read(...chunks)).toEqual([[long, 1]]);
  });

  test("a null array is null, an empty one is empty", () => {
    expect(read(Buffer.from("*-1\r\n*0\r\n"))).toEqual([null, []]);
  });

  test.each(["HTTP/1.1 400 Bad Request\r\n", "\x15\x03\x01\x00\x02\x02\x50\r\n", "$x\r\n", ":\r\n"])("%j is no reply", (text) => {
    expect(() => read(Buffer.from(text, "latin1"))).toThrow(/not a Redis reply/);
  });

  test("a stream without line ends is given up", () => {
    expect(() => read(Buffer.alloc(70_000, "+"))).toThrow(/without end/);
  });
});

test("a command carries any bytes, a character each", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.string({ unit: "grapheme" }),
          fc.uint8Array().map((bytes) => Buffer.from(bytes)),
        ),
      ),
      (args) => {
        const [command] = read(Buffer.from(encodeCommand(args), "latin1"));
        expect(command).toEqual(args.map((arg) => Buffer.from(arg as string)));
      },
    ),
  );
  expect(bulk("ä")).toBe("$2\r\n\u00c3\u00a4\r\n");
});
