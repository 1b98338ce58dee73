import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyChoices, anyJson, spell } from "../../test/support/json-spelling.ts";
import { compactJson } from "./compact.ts";
import { JsonScanner, JsonSyntaxError } from "./scan.ts";

interface Visit {
  readonly depth: number;
  readonly key: string | null;
  readonly text: string;
  readonly normal: boolean;
}

/** Scans a text in slices and returns what the visitor heard. */
function scan(bytes: Buffer, visitDepth = 2, slice = Number.POSITIVE_INFINITY): Visit[] {
  const visits: Visit[] = [];
  const scanner = new JsonScanner(
    {
      value(depth, keyStart, keyEnd, start, end, normal) {
        const key = keyStart < 0 ? null : bytes.toString("utf8", keyStart, keyEnd);
        visits.push({ depth, key, text: bytes.toString("utf8", start, end), normal });
      },
    },
    visitDepth,
  );
  scanner.begin(bytes);
  while (!scanner.advance(slice));
  return visits;
}

function isJson(bytes: Buffer): boolean {
  try {
    scan(bytes);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(JsonSyntaxError);
    return false;
  }
}

describe("JsonScanner", () => {
  test("tells each value's place, what is inside before what is around", () => {
    expect(scan(Buffer.from('{"a": [1, {"b":2}], "c":"x"}')).map(({ depth, key, text }) => [depth, key, text])).toEqual([
      [2, null, "1"],
      [2, null, '{"b":2}'],
      [1, "a", '[1, {"b":2}]'],
      [1, "c", '"x"'],
      [0, null, '{"a": [1, {"b":2}], "c":"x"}'],
    ]);
  });

  test("keeps the spelling of numbers and names", () => {
    const visits = scan(Buffer.from('{"\\u0061":12345678901234567890,"b":-0.10E+02,"b":1.0}'), 1);
    expect(visits.slice(0, 3).map(({ key, text }) => [key, text])).toEqual([
      ["\\u0061", "12345678901234567890"],
      ["b", "-0.10E+02"],
      ["b", "1.0"],
    ]);
  });

  test.each([
    ['{"a":"b\\n\\"\\\\ \u00e9\u4e2d","c":[1.0,true,null,{}]}', true],
    ['{"a":"\\u001b[0m"}', true],
    ['{"a": 1}', false],
    ['{"a":"\\u00e9"}', false],
    ['{"a":"\\/"}', false],
    ['{"a":"\\u001B"}', false],
    ['{"a":"\\u000a"}', false],
    ['{"a":"\u2028"}', false],
    ['{"a":"\u0085"}', false],
    ['{"a":"\u2027\u0086\u00a8"}', true],
    ['{"\\u0061":1}', false],
  ])("%s is in normal form: %s", (text, normal) => {
    expect(scan(Buffer.from(text)).at(-1)?.normal).toBe(normal);
  });

  test("white space around a value does not make the value itself odd", () => {
    const [a, b] = scan(Buffer.from('{ "a" : [1] , "b" : [ 2 ] }'), 1);
    expect([a?.normal, b?.normal]).toEqual([true, false]);
  });

  test.each([
    "",
    " ",
    "{",
    "[",
    "]",
    "}",
    "[1,]",
    "[,1]",
    "[1 2]",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    "{1:1}",
    "{'a':1}",
    '{"a":1 "b":2}',
    "[1}",
    '{"a":1]',
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "0x1",
    "1_0",
    "-01",
    "NaN",
    "Infinity",
    "-Infinity",
    "nul",
    "nulll",
    "True",
    "truefalse",
    "undefined",
    '"',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\U0041"',
    '"\n"',
    '"\t"',
    '"\u0000"',
    "//",
    "/**/1",
    "1 1",
    '"a" "b"',
    "\ufeff1",
    "\u00a01",
    "[1]\u0000",
  ])("%j is not JSON", (text) => {
    expect(isJson(Buffer.from(text))).toBe(false);
  });

  test.each([
    "0",
    "-0",
    "1e5",
    "1E-5",
    "0.0",
    "true",
    "null",
    '""',
    "[]",
    "{}",
    " [ ] ",
    '"\\ud800"',
    '"\u007f"',
    '{"":0}',
    '{"a":1,"a":2}',
  ])("%j is JSON", (text) => {
    expect(isJson(Buffer.from(text))).toBe(true);
  });

  test("says where the text stops being JSON", () => {
    expect(() => scan(Buffer.from('{"a":1,"b":nope}'))).toThrow(
      expect.objectContaining({ offset: 12, code: "PENSTOCK_INVALID_JSON" }),
    );
    expect(() => scan(Buffer.from('{"a":'))).toThrow(expect.objectContaining({ offset: 5 }));
  });

  test("reads a part of a buffer as if nothing lay around it", () => {
    const bytes = Buffer.from('99[12,"x"]34');
    const scanner = new JsonScanner({ value() {} }, 0);
    scanner.begin(bytes, 2, 10);
    expect(scanner.advance()).toBe(true);
    for (const end of [3, 4, 5, 7, 9]) {
      scanner.begin(bytes, 2, end);
      expect(() => scanner.advance()).toThrow(JsonSyntaxError);
    }
    scanner.begin(bytes, 3, 4);
    expect(scanner.advance()).toBe(true);
  });

  test("counts how deep containers lie, without a limit of its own", () => {
    const scanner = new JsonScanner({ value() {} }, 1);
    scanner.begin(Buffer.from(`${"[".repeat(100_000)}${"]".repeat(100_000)}`));
    expect(scanner.advance()).toBe(true);
    expect(scanner.deepest).toBe(100_000);
  });

  test("takes what JSON.parse takes, and visits what it holds", () => {
    fc.assert(
      fc.property(anyJson, anyChoices, (value, choices) => {
        const bytes = Buffer.from(spell(value, choices));
        const visits = scan(bytes, 1);
        const whole = JSON.parse(visits.at(-1)?.text ?? "");
        expect(whole).toEqual(JSON.parse(bytes.toString()));
        if (typeof whole !== "object" || whole === null) return;
        const members = visits
          .slice(0, -1)
          .map(({ key, text }) => [key === null ? null : JSON.parse(`"${key}"`), JSON.parse(text)]);
        if (Array.isArray(whole)) expect(members).toEqual(whole.map((item) => [null, item]));
        else expect(Object.fromEntries(members)).toEqual(whole);
      }),
    );
  });

  test("takes and refuses exactly what JSON.parse does, whatever bytes come", () => {
    const change = fc.record({
      at: fc.nat(200),
      remove: fc.nat(3),
      insert: fc.uint8Array({ maxLength: 3 }),
      swap: fc.constantFrom(...'[]{}:,"\\ 0-.eu'),
    });
    fc.assert(
      fc.property(anyJson, anyChoices, fc.array(change, { maxLength: 3 }), (value, choices, changes) => {
        let bytes = Buffer.from(spell(value, choices));
        for (const { at, remove, insert, swap } of changes) {
          const position = at % (bytes.length + 1);
          const middle = insert.length > 1 ? Buffer.from(insert) : Buffer.from(swap);
          bytes = Buffer.concat([bytes.subarray(0, position), middle, bytes.subarray(position + remove)]);
        }
        if (!isUtf8(bytes)) return;
        expect(isJson(bytes)).toBe(parses(bytes));
      }),
      { numRuns: 2000 },
    );
  });

  test("hears the same whatever the size of the slices", () => {
    fc.assert(
      fc.property(anyJson, anyChoices, fc.integer({ min: 1, max: 20 }), (value, choices, slice) => {
        const bytes = Buffer.from(spell(value, choices));
        expect(scan(bytes, 2, slice)).toEqual(scan(bytes, 2));
      }),
    );
  });

  test("what it calls normal is normal", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        for (const { text, normal } of scan(Buffer.from(JSON.stringify(value)), 3)) {
          if (normal) expect(compactJson(Buffer.from(text)).toString()).toBe(text);
        }
      }),
    );
  });
});

function parses(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}
