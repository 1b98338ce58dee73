import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RESERVED_KINDS } from "../../protocol/wire.ts";
import { anyChoices, anyJson, anyText, type Json, spell } from "../../test/support/json-spelling.ts";
import { RequestError } from "../errors.ts";
import { parseBatch } from "../publish/batch.ts";
import { type Decoded, decodeEntry, MAX_ENTRY_BYTES } from "./decode.ts";

const RUN = "11111111-2222-4333-8444-555555555555";
const EVENT = `{"pipeline_run_id":"${RUN}","step_run_id":null,"step_name":"train","kind":"token","correlation_id":"c1","index":12,"payload":{"b":1.0,"10":[],"2":"\u00fc"}}`;

function decode(payload: string | Buffer | null): Decoded {
  return decodeEntry({ id: "1-0", payload: typeof payload === "string" ? Buffer.from(payload) : payload });
}

/** Data as text, for comparing. */
function readable(decoded: Decoded) {
  return decoded.type === "event" ? { ...decoded, data: decoded.data.toString() } : decoded;
}

describe("an entry", () => {
  test("that a publish stored is passed on as it is, without a copy", () => {
    const payload = Buffer.from(`{"type":"event","event":${EVENT}}`);
    const decoded = decode(payload);
    expect(readable(decoded)).toEqual({ type: "event", kind: "token", stepName: "train", correlationId: "c1", data: EVENT });
    expect((decoded as { data: Buffer }).data.buffer).toBe(payload.buffer);
  });

  test.each([
    [
      "white space",
      `{ "type" : "event", "event": ${JSON.stringify(JSON.parse(EVENT), null, 2).replace('"b": 1', '"b": 1.0')}\n}`,
    ],
    ["another order of members", `{"event":${EVENT},"type":"event"}`],
    ["other members", `{"v":{"kind":"x","payload":3},"type":"event","event":${EVENT},"more":[{"kind":4}]}`],
    ["other fields", `{"type":"event","event":${EVENT.replace('"kind"', '"at":17,"kind"')}}`],
    [
      "fields that come twice",
      `{"type":"future","type":"event","event":{"kind":"lost"},"event":${EVENT.replace('"kind"', '"kind":3,"kind"')}}`,
    ],
    [
      "ASCII escapes",
      `{"type":"\\u0065vent","\\u0065vent":${EVENT.replaceAll("\u00fc", "\\u00FC").replace("train", "tr\\u0061in")}}`,
    ],
    ["an index in quotes", `{"type":"event","event":${EVENT.replace(":12,", ':"12",')}}`],
    ["an index with a fraction", `{"type":"event","event":${EVENT.replace(":12,", ":12.0,")}}`],
  ])("with %s comes out the same", (_what, payload) => {
    const expected = JSON.parse(EVENT);
    const decoded = decode(payload);
    expect(decoded).toMatchObject({ type: "event", kind: "token", stepName: "train", correlationId: "c1" });
    const data = (decoded as { data: Buffer }).data.toString();
    expect(JSON.parse(data)).toEqual(expected);
    expect(data.slice(0, data.indexOf('"payload"'))).toBe(EVENT.slice(0, EVENT.indexOf('"payload"')));
    expect(data).toContain('"b":1.0');
  });

  test("with its fields in another order is brought into ZenML's", () => {
    const payload = `{"type":"event","event":{"payload":{},"kind":"k","pipeline_run_id":"${RUN}"}}`;
    expect(readable(decode(payload))).toEqual({
      type: "event",
      kind: "k",
      stepName: null,
      correlationId: null,
      data: `{"pipeline_run_id":"${RUN}","step_run_id":null,"step_name":null,"kind":"k","correlation_id":null,"index":null,"payload":{}}`,
    });
  });

  test("of another run, or with an index of any size, is passed on", () => {
    const event = EVENT.replace(RUN, "Nightly-7").replace(":12,", ":-123456789012345678901234567890,");
    expect(readable(decode(`{"type":"event","event":${event}}`))).toMatchObject({ data: event });
  });

  test("with characters that end lines for some clients has them as escapes", () => {
    const decoded = readable(decode(`{"type":"event","event":${EVENT.replace("\u00fc", "\u0085\u2028\u2029")}}`));
    expect(decoded).toMatchObject({ data: EVENT.replace("\u00fc", "\\u0085\\u2028\\u2029") });
  });

  test.each(['{"type":"end"}', ' {"type" : "end"} ', '{"run":1,"type":"end","event":3}', '{"type":"event","type":"\\u0065nd"}'])(
    "%s is an end",
    (payload) => {
      expect(decode(payload)).toEqual({ type: "end" });
    },
  );

  test.each([
    [null, "?"],
    ["", "?"],
    ["not json", "?"],
    ['{"type":"event"', "?"],
    ["[]", "?"],
    ["3", "?"],
    ['"event"', "?"],
    ["{}", "?"],
    ['{"type":null}', "?"],
    ['{"type":false}', "?"],
    ['{"type":0}', "?"],
    ['{"type":-0.0}', "?"],
    ['{"type":""}', "?"],
    ['{"type":[]}', "?"],
    ['{"type":{ }}', "?"],
    ['{"type":5}', "5"],
    ['{"type":1.50}', "1.50"],
    ['{"type":"future","event":{}}', "future"],
    ['{"type":"Event"}', "Event"],
    ['{"type":"\\u00fc\\n"}', "\u00fc\n"],
    ['{"type":"event"}', "event"],
    ['{"type":"event","event":null}', "event"],
    ['{"type":"event","event":[]}', "event"],
    ['{"type":"event","event":{}}', "event"],
    ['{"type":"event","other":{"pipeline_run_id":"r","kind":"k"},"event":{}}', "event"],
    ['{"type":"event","event":{"pipeline_run_id":"r","kind":"k"},"event":{}}', "event"],
  ])("%s is unknown, of type %j", (payload, unknownType) => {
    expect(decode(payload)).toEqual({ type: "unknown", unknownType });
  });

  test.each([
    ["kind", "3"],
    ["kind", "null"],
    ["kind", '"a\\nb"'],
    ["kind", '"a\\r"'],
    ["kind", '"\\u0000"'],
    ["kind", '"\\ud800"'],
    ...RESERVED_KINDS.map((kind) => ["kind", `"${kind}"`]),
    ["kind", '"\\u0065nd"'],
    ["step_name", "3"],
    ["step_name", '"\\udc00"'],
    ["correlation_id", "{}"],
    ["step_run_id", "7"],
    ["pipeline_run_id", "null"],
    ["index", "1.5"],
    ["index", '"x"'],
    ["index", "{}"],
    ["payload", "null"],
    ["payload", "[]"],
  ])("whose %s is %s is an unknown event", (field, value) => {
    const payload = `{"type":"event","event":${EVENT.replace(new RegExp(`"${field}":(?:"[^"]*"|\\{.*?\\}|[^,}]*)`), `"${field}":${value}`)}}`;
    expect(JSON.parse(payload).event[field]).toEqual(JSON.parse(value));
    expect(decode(payload)).toEqual({ type: "unknown", unknownType: "event" });
  });

  test("that is not UTF-8 or far too large is unknown", () => {
    expect(decode(Buffer.from(`{"type":"event","event":${EVENT}}`, "latin1"))).toEqual({ type: "unknown", unknownType: "?" });
    const large = `{"type":"event","event":${EVENT.replace("train", "x".repeat(MAX_ENTRY_BYTES))}}`;
    expect(decode(large)).toEqual({ type: "unknown", unknownType: "?" });
  });

  test("with an endless type is named by its beginning", () => {
    expect(decode(`{"type":"${"x".repeat(5000)}"}`)).toEqual({ type: "unknown", unknownType: "x".repeat(100) });
    expect(decode(`{"type":[${"1,".repeat(5000)}1]}`)).toMatchObject({
      type: "unknown",
      unknownType: expect.stringMatching(/^\[1,1,/),
    });
  });

  test("does not change what the next one is", () => {
    const event = `{"type":"event","event":${EVENT}}`;
    const expected = readable(decode(event));
    for (const other of ['{"type":"end"}', "{{", '{"event":{"kind":"x"', '{"type":"event","event":{"kind":"x"}}']) {
      decode(other);
      expect(readable(decode(event))).toEqual(expected);
    }
  });
});

describe("any entry", () => {
  const anyFields = fc.record(
    {
      pipeline_run_id: fc.constant(RUN),
      step_run_id: fc.constantFrom(null, RUN),
      step_name: fc.option(anyText),
      kind: anyText,
      correlation_id: fc.option(anyText),
      index: fc.option(fc.integer()),
      payload: fc.dictionary(anyText, anyJson, { noNullPrototype: true }),
    },
    { noNullPrototype: true },
  ) as fc.Arbitrary<Record<string, Json>>;

  test("that a publish stores is read as what was published", async () => {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(anyFields, anyChoices, async (event, choices) => {
        let entries: Buffer[];
        try {
          ({ entries } = await parseBatch(Buffer.from(spell({ events: [event] }, choices)), RUN));
        } catch (error) {
          expect(error).toBeInstanceOf(RequestError);
          return;
        }
        const payload = entries[0] as Buffer;
        const decoded = decode(payload);
        expect(readable(decoded)).toMatchObject({
          type: "event",
          kind: event["kind"],
          stepName: event["step_name"],
          correlationId: event["correlation_id"],
          data: payload.toString().slice('{"type":"event","event":'.length, -1),
        });
        read++;
      }),
    );
    expect(read).toBeGreaterThan(10);
  });

  test("is read the same however it is written", () => {
    fc.assert(
      fc.property(anyFields, anyChoices, anyChoices, (event, some, others) => {
        const entry = { type: "event", event };
        expect(readable(decode(spell(entry, some)))).toEqual(readable(decode(spell(entry, others))));
      }),
    );
  });

  test("never throws, and its data is one line of JSON", () => {
    fc.assert(
      fc.property(anyFields, anyChoices, fc.nat(500), fc.uint8Array({ maxLength: 3 }), (event, choices, at, garbage) => {
        const bytes = Buffer.from(spell({ type: "event", event }, choices));
        const place = at % (bytes.length + 1);
        const decoded = decode(Buffer.concat([bytes.subarray(0, place), garbage, bytes.subarray(place + garbage.length)]));
        if (decoded.type !== "event") return;
        expect(decoded.kind).not.toMatch(/[\r\n\0]/);
        expect(decoded.data.toString()).not.toMatch(/[\u0000-\u001f\u0085\u2028\u2029]/);
        expect(Object.keys(JSON.parse(decoded.data.toString()))).toEqual([
          "pipeline_run_id",
          "step_run_id",
          "step_name",
          "kind",
          "correlation_id",
          "index",
          "payload",
        ]);
      }),
      { numRuns: 1000 },
    );
  });
});
