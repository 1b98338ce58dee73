import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyChoices, anyJson, anyText, type Json, spell } from "../../test/support/json-spelling.ts";
import { RequestError } from "../errors.ts";
import { parseBatch } from "./batch.ts";

const RUN = "11111111-2222-4333-8444-555555555555";

/** The stored frames of a body, as text. */
async function frames(body: string | Buffer): Promise<string[]> {
  return (await parseBatch(Buffer.from(body), RUN)).entries.map(String);
}

describe("whatever comes", () => {
  const anyEvent = fc.record(
    {
      pipeline_run_id: fc.oneof(fc.constant(RUN), anyJson),
      step_run_id: fc.oneof(fc.constantFrom(null, RUN), anyJson),
      step_name: fc.oneof(fc.constant(null), anyText, anyJson),
      kind: fc.oneof(anyText, fc.constantFrom("end", "token"), anyJson),
      correlation_id: fc.oneof(fc.constant(null), anyText, anyJson),
      index: fc.oneof(fc.integer(), anyJson),
      payload: fc.oneof(fc.dictionary(anyText, anyJson, { noNullPrototype: true }), anyJson),
    },
    { requiredKeys: [], noNullPrototype: true },
  );
  const anyBody = fc.oneof(
    { weight: 5, arbitrary: fc.record({ events: fc.array(anyEvent, { maxLength: 3 }) }, { noNullPrototype: true }) },
    { weight: 1, arbitrary: anyJson },
  ) as fc.Arbitrary<Json>;

  test("is stored with its meaning kept, or refused with a RequestError", async () => {
    let stored = 0;
    await fc.assert(
      fc.asyncProperty(anyBody, anyChoices, async (body, choices) => {
        const text = spell(body, choices);
        let result: string[];
        try {
          result = await frames(text);
        } catch (error) {
          expect(error).toBeInstanceOf(RequestError);
          return;
        }
        stored += result.length;
        const { events } = JSON.parse(text) as { events: Record<string, Json>[] };
        expect(result).toHaveLength(events.length);
        for (const [n, event] of events.entries()) {
          const { type, event: kept } = JSON.parse(result[n] as string);
          expect(type).toBe("event");
          expect(kept).toMatchObject({ pipeline_run_id: RUN, kind: event["kind"], payload: event["payload"] ?? {} });
          expect([kept.step_name, kept.correlation_id]).toEqual([event["step_name"] ?? null, event["correlation_id"] ?? null]);
        }
      }),
      { numRuns: 1000 },
    );
    expect(stored).toBeGreaterThan(0);
  });

  test("bytes that are garbage are refused with a RequestError", async () => {
    await fc.assert(
      fc.asyncProperty(anyBody, anyChoices, fc.nat(400), fc.uint8Array({ maxLength: 4 }), async (body, choices, at, garbage) => {
        const bytes = Buffer.from(spell(body, choices));
        const place = at % (bytes.length + 1);
        const broken = Buffer.concat([bytes.subarray(0, place), garbage, bytes.subarray(place + garbage.length)]);
        try {
          await frames(broken);
        } catch (error) {
          expect(error).toBeInstanceOf(RequestError);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
