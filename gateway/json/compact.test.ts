import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyChoices, anyJson, anyText, spell } from "../../test/support/json-spelling.ts";
import { Compactor, compactJson } from "./compact.ts";

describe("the normal form", () => {
  test.each([
    ['{ "a" : [ 1 , 2.0 ] ,\n\t"b":\r{} }', '{"a":[1,2.0],"b":{}}'],
    ['"a b\\tc"', '"a b\\tc"'],
    ["[1.0,100000.0,-0.0,-0,1E5,1.10,12345678901234567890,1e400]", "[1.0,100000.0,-0.0,-0,1E5,1.10,12345678901234567890,1e400]"],
    ['{"b":1,"10":2,"2":3,"__proto__":{"x":1},"b":4}', '{"b":1,"10":2,"2":3,"__proto__":{"x":1},"b":4}'],
    ['"\\u00fc\\u4E2D\\ud83d\\ude00\\/"', '"ü中😀/"'],
    ['"\\u0022\\u005c\\u0041"', '"\\"\\\\A"'],
    ['"\\u0000\\u001F\\u000a\\u000D\\u0009\\u0008\\u000c\\u007f"', '"\\u0000\\u001f\\n\\r\\t\\b\\f\u007f"'],
    ['"\u0085\u2028\u2029\\u0085\\u2028\\u2029"', '"\\u0085\\u2028\\u2029\\u0085\\u2028\\u2029"'],
    ['"\u0084\u0086\u2027\u202a"', '"\u0084\u0086\u2027\u202a"'],
    ['"\\uD800"', '"\\ud800"'],
    ['"\\ud83d\\ud83d\\ude00\\ude00\\ud83dx\\ud83d\\n"', '"\\ud83d😀\\ude00\\ud83dx\\ud83d\\n"'],
    ['{"\\u0061":"\\\\u0061"}', '{"a":"\\\\u0061"}'],
    [" true ", "true"],
  ])("%s becomes %s", (text, normal) => {
    expect(compactJson(Buffer.from(text)).toString()).toBe(normal);
  });

  test("means the same, and is a normal form itself", () => {
    fc.assert(
      fc.property(anyJson, anyChoices, (value, choices) => {
        const text = spell(value, choices);
        const normal = compactJson(Buffer.from(text));
        expect(JSON.parse(normal.toString())).toEqual(JSON.parse(text));
        expect(compactJson(normal).toString()).toBe(normal.toString());
      }),
    );
  });

  test("does not depend on how strings and white space were written", () => {
    fc.assert(
      fc.property(anyJson, anyChoices, anyChoices, (value, some, others) => {
        const [one, other] = [spell(value, some), spell(value, others)];
        expect(compactJson(Buffer.from(one)).toString()).toBe(compactJson(Buffer.from(other)).toString());
      }),
    );
  });

  test("is one line for every client, and valid UTF-8", () => {
    fc.assert(
      fc.property(anyText, anyChoices, (value, choices) => {
        const bytes = compactJson(Buffer.from(spell(value, choices)));
        expect(isUtf8(bytes)).toBe(true);
        expect(bytes.toString()).not.toMatch(/[\u0000-\u001f\u0085\u2028\u2029]/);
      }),
    );
  });

  test("is the same in slices of any size, and its length is known though it does not fit", () => {
    fc.assert(
      fc.property(anyJson, anyChoices, fc.integer({ min: 1, max: 9 }), fc.nat(30), (value, choices, slice, room) => {
        const bytes = Buffer.from(spell(value, choices));
        const whole = compactJson(bytes);
        const target = Buffer.alloc(room);
        const compactor = new Compactor(target);
        compactor.begin(bytes, 0, bytes.length);
        while (!compactor.advance(slice));
        expect(compactor.written).toBe(whole.length);
        const fitting = Math.min(room, whole.length);
        expect(target.subarray(0, fitting)).toEqual(whole.subarray(0, fitting));
      }),
    );
  });

  test("bytes that are normal already are copied as far as there is room", () => {
    const target = Buffer.alloc(5);
    const compactor = new Compactor(target);
    compactor.copy(Buffer.from("abc"), 0, 3);
    compactor.copy(Buffer.from("xdefx"), 1, 4);
    compactor.copy(Buffer.from("more"), 0, 4);
    expect([compactor.written, target.toString()]).toEqual([10, "abcde"]);
  });
});
