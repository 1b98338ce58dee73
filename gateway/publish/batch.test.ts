import { describe, expect, test } from "vitest";
import type { Json } from "../../test/support/json-spelling.ts";
import { RequestError } from "../errors.ts";
import { MAX_BYTES_AT_ONCE, parseBatch } from "./batch.ts";

const RUN = "11111111-2222-4333-8444-555555555555";

/** The stored frames of a body, as text. */
async function frames(body: Json | string | Buffer, runId = RUN): Promise<string[]> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  return (await parseBatch(bytes, runId)).entries.map(String);
}

/** The refusal of a body. */
async function refusal(body: Json | string | Buffer, runId = RUN): Promise<RequestError> {
  try {
    await frames(body, runId);
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    return error as RequestError;
  }
  throw new Error("was not refused");
}

function frame(fields: string): string {
  return `{"type":"event","event":{"pipeline_run_id":"${RUN}",${fields}}}`;
}

describe("a batch", () => {
  test("is stored as ZenML's server would: all seven fields, in its order, compact", async () => {
    const event = {
      payload: { z: [1, 2], a: null },
      index: 7,
      correlation_id: "c",
      kind: "token",
      step_name: "train",
      step_run_id: "0AB1C2D3E4F5461798A9BACBDCEDFE0F",
      pipeline_run_id: RUN.toUpperCase(),
      extra: 1,
    };
    expect(await frames(`{"other":[{"kind":3}],"events": [ ${JSON.stringify(event, null, 2)} ]}`)).toEqual([
      frame(
        '"step_run_id":"0ab1c2d3-e4f5-4617-98a9-bacbdcedfe0f","step_name":"train","kind":"token","correlation_id":"c","index":7,"payload":{"z":[1,2],"a":null}',
      ),
    ]);
  });

  test("fields that are left out become null, and the payload empty", async () => {
    const bare = frame('"step_run_id":null,"step_name":null,"kind":"k","correlation_id":null,"index":null,"payload":{}');
    const nulls = { kind: "k", step_run_id: null, step_name: null, correlation_id: null, index: null };
    expect(await frames({ events: [{ kind: "k" }, nulls] })).toEqual([bare, bare]);
  });

  test("what ZenML's producer sends is taken as it comes", async () => {
    const body = `{"events": [{"pipeline_run_id": "${RUN}", "step_run_id": null, "step_name": null, "kind": "t\\u00fcr", "correlation_id": null, "index": null, "payload": {"text": "\\u00fc \\ud83d\\ude00 \\u2028", "f": 1.0, "n": 12345678901234567890}}]}`;
    expect(await frames(body)).toEqual([
      frame(
        '"step_run_id":null,"step_name":null,"kind":"tür","correlation_id":null,"index":null,"payload":{"text":"ü 😀 \\u2028","f":1.0,"n":12345678901234567890}',
      ),
    ]);
  });

  test("may be empty", async () => {
    expect(await frames({ events: [] })).toEqual([]);
  });

  test("takes members that come twice as the later one", async () => {
    const body = `{"events":[{"kind":"lost"}],"events":[{"kind":"a","kind":"b","payload":[],"payload":{"x":1,"x":2},"index":1,"index":null}]}`;
    expect(await frames(body)).toEqual([
      frame('"step_run_id":null,"step_name":null,"kind":"b","correlation_id":null,"index":null,"payload":{"x":1,"x":2}'),
    ]);
  });

  test("takes names that are written with escapes", async () => {
    expect(await frames('{"\\u0065vents":[{"k\\u0069nd":"a"}]}')).toHaveLength(1);
  });

  test("memory of a frame is its own, so that one kept event does not keep its whole body", async () => {
    const body = Buffer.from(JSON.stringify({ events: [{ kind: "k" }] }));
    const { entries } = await parseBatch(body, RUN);
    const before = String(entries[0]);
    body.fill(0);
    await parseBatch(Buffer.from(JSON.stringify({ events: [{ kind: "other" }] })), RUN);
    expect(String(entries[0])).toBe(before);
  });
});

describe("the run of an event", () => {
  test.each([RUN, RUN.toUpperCase(), RUN.replaceAll("-", ""), `urn:uuid:${RUN}`, `{${RUN}}`])(
    "%s is the URL's run",
    async (id) => {
      expect(await frames({ events: [{ kind: "k", pipeline_run_id: id }] })).toHaveLength(1);
    },
  );

  test.each(["11111111-2222-4333-8444-555555555556", "", "nonsense", `${RUN} `, "x".repeat(5000), `\ud800${RUN}`])(
    "%j is not",
    async (id) => {
      const error = await refusal({ events: [{ kind: "k" }, { kind: "k", pipeline_run_id: id }] });
      expect(error).toMatchObject({ status: 400, code: "PENSTOCK_RUN_MISMATCH" });
      expect(error.message).toMatch(/^events\[1\]\.pipeline_run_id /);
    },
  );

  test("that is no UUID is compared letter by letter", async () => {
    expect(await frames({ events: [{ kind: "k", pipeline_run_id: "Nightly.1" }] }, "Nightly.1")).toHaveLength(1);
    expect((await refusal({ events: [{ kind: "k", pipeline_run_id: "nightly.1" }] }, "Nightly.1")).status).toBe(400);
  });
});

describe("the kind of an event", () => {
  test.each(["end", "gap", "error", "cursor", "system"])("%s is the server's own", async (kind) => {
    const events = [{ kind: "fine" }, { kind }, { kind: "fine" }];
    const error = await refusal({ events });
    expect(error).toMatchObject({ status: 400, code: "PENSTOCK_RESERVED_KIND" });
    expect(error.message).toMatch(/^events\[1\]\.kind /);
  });

  test("is found out though it is written with escapes", async () => {
    expect(await refusal('{"events":[{"kind":"\\u0065nd"}]}')).toMatchObject({ status: 400, code: "PENSTOCK_RESERVED_KIND" });
    expect(await refusal('{"events":[{"kind":"a\\u000db"}]}')).toMatchObject({ status: 400, code: "PENSTOCK_UNSAFE_KIND" });
  });

  test.each(["a\nb", "a\rb", "\r\n", "\0", "end\n", "x\u0000"])("%j cannot travel", async (kind) => {
    const error = await refusal({ events: [{ kind }] });
    expect(error).toMatchObject({ status: 400, code: "PENSTOCK_UNSAFE_KIND" });
    expect(error.message).not.toContain(kind);
  });

  test.each([
    "",
    " ",
    "tok: x",
    "ping",
    "message",
    "open",
    "End",
    "end ",
    "x".repeat(65),
    "a\tb",
    "data:",
    "\\n",
    "\\\\r",
    "ünïcödé 中",
  ])("%j comes out as it went in", async (kind) => {
    expect(JSON.parse((await frames({ events: [{ kind }] }))[0] as string).event.kind).toBe(kind);
  });
});

describe("the index of an event", () => {
  test.each([
    ["0", "0"],
    ["-7", "-7"],
    ["-0", "0"],
    ["123456789012345678901234567890", "123456789012345678901234567890"],
    ["3.0", "3"],
    ["-3.00", "-3"],
    ["1e3", "1000"],
    ["0.5e1", "5"],
    ["-0.0", "0"],
    ["true", "1"],
    ["false", "0"],
    ['"7"', "7"],
    ['" 7 "', "7"],
    ['"1_000"', "1000"],
    ['"7.0"', "7"],
    ['"-007"', "-7"],
    ['"+5"', "5"],
    ['"\\u0037"', "7"],
    ["null", "null"],
  ])("%s is kept as %s", async (given, kept) => {
    expect((await frames(`{"events":[{"kind":"k","index":${given}}]}`))[0]).toContain(`"index":${kept},`);
  });

  test.each(["3.5", "1e400", "1e-1", "1e30", '""', '"x"', '"1__0"', '"7.5"', '"_1"', "[]", "{}", `1${"0".repeat(4300)}`])(
    "%s is no integer",
    async (given) => {
      const error = await refusal(`{"events":[{"kind":"k","index":${given}}]}`);
      expect(error).toMatchObject({ status: 422, code: "PENSTOCK_INVALID_BATCH" });
      expect(error.message).toMatch(/^events\[0\]\.index must be an integer/);
    },
  );
});

describe("a batch against the schema", () => {
  test.each([
    ["[]", /^The body must be an object/],
    ["3", /^The body must be an object/],
    ["{}", /^events must be an array/],
    ['{"events":null}', /^events must be an array/],
    ['{"events":{"kind":"k"}}', /^events must be an array/],
    ['{"events":[3]}', /^events\[0\] must be an object/],
    ['{"events":[{"kind":"k"},[]]}', /^events\[1\] must be an object/],
    ['{"events":[{}]}', /^events\[0\]\.kind must be a string/],
    ['{"events":[{"kind":null}]}', /^events\[0\]\.kind must be a string/],
    ['{"events":[{"kind":3}]}', /^events\[0\]\.kind must be a string/],
    ['{"events":[{"kind":"k","step_name":3}]}', /^events\[0\]\.step_name must be a string or null/],
    ['{"events":[{"kind":"k","correlation_id":{}}]}', /^events\[0\]\.correlation_id must be a string or null/],
    ['{"events":[{"kind":"k","step_run_id":""}]}', /^events\[0\]\.step_run_id must be a UUID or null/],
    ['{"events":[{"kind":"k","step_run_id":"train"}]}', /^events\[0\]\.step_run_id must be a UUID or null/],
    ['{"events":[{"kind":"k","step_run_id":7}]}', /^events\[0\]\.step_run_id must be a UUID or null/],
    ['{"events":[{"kind":"k","payload":null}]}', /^events\[0\]\.payload must be an object/],
    ['{"events":[{"kind":"k","payload":[]}]}', /^events\[0\]\.payload must be an object/],
    ['{"events":[{"kind":"k","payload":"{}"}]}', /^events\[0\]\.payload must be an object/],
    ['{"events":[{"kind":"k","pipeline_run_id":null}]}', /^events\[0\]\.pipeline_run_id must be a string/],
    ['{"events":[{"kind":"\\ud800"}]}', /^events\[0\]\.kind must be free of lone surrogates/],
    ['{"events":[{"kind":"k","step_name":"a\\udc00b"}]}', /^events\[0\]\.step_name must be free of lone surrogates/],
    ['{"events":[{"kind":"k","correlation_id":"\\ude00\\ud83d"}]}', /^events\[0\]\.correlation_id must be free/],
    [`{"events":[{"kind":"k","payload":${'{"a":'.repeat(250)}1${"}".repeat(250)}}]}`, /^The body is nested 253 levels deep/],
  ])("%s is refused, and the field named", async (body, message) => {
    const error = await refusal(body);
    expect(error).toMatchObject({ status: 422, code: "PENSTOCK_INVALID_BATCH" });
    expect(error.message).toMatch(message);
  });

  test("a thousand events are taken, one more is not", async () => {
    expect(await frames({ events: Array.from({ length: 1000 }, () => ({ kind: "k" })) })).toHaveLength(1000);
    const error = await refusal({ events: Array.from({ length: 1001 }, () => ({ kind: "k" })) });
    expect(error).toMatchObject({ status: 422, message: expect.stringContaining("1001") });
  });

  test("nesting of a payload up to the limit is kept", async () => {
    const payload = `${'{"a":'.repeat(196)}{}${"}".repeat(196)}`;
    expect((await frames(`{"events":[{"kind":"k","payload":${payload}}]}`))[0]).toContain(payload);
  });
});

describe("what is not JSON in UTF-8", () => {
  test.each([
    ["nothing", Buffer.alloc(0)],
    ["cut off", Buffer.from('{"events":[{"kind":"k"')],
    ["a byte order mark", Buffer.from('\ufeff{"events":[]}')],
    ["Latin-1", Buffer.from('{"events":[{"kind":"\u00fc"}]}', "latin1")],
    ["a character cut in two", Buffer.from('{"events":[{"kind":"中').subarray(0, -1)],
    ["a raw surrogate", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["UTF-16", Buffer.from('{"events":[]}', "utf16le")],
    ["NaN", Buffer.from('{"events":[{"kind":"k","payload":{"x":NaN}}]}')],
    ["Infinity", Buffer.from('{"events":[{"kind":"k","payload":{"x":-Infinity}}]}')],
    ["two texts", Buffer.from('{"events":[]}{"events":[]}')],
    ["a raw line end in a string", Buffer.from('{"events":[{"kind":"a\nb"}]}')],
    ["a form", Buffer.from("events=1")],
  ])("%s is refused with 400", async (_name, body) => {
    expect(await refusal(body)).toMatchObject({ status: 400, code: "PENSTOCK_INVALID_JSON" });
  });

  test("lone surrogates in a payload stay the escapes that they came as", async () => {
    expect((await frames('{"events":[{"kind":"k","payload":{"t":"\\uD800 \\udfff"}}]}'))[0]).toContain('{"t":"\\ud800 \\udfff"}');
  });
});

describe("the size of an event", () => {
  /** A body whose only frame has so many bytes. */
  const ofSize = (bytes: number, letter = "x") => {
    const empty = frame('"step_run_id":null,"step_name":null,"kind":"k","correlation_id":null,"index":null,"payload":{"t":""}');
    return `{"events": [ {"kind": "k", "payload": { "t": "${letter.repeat(bytes - empty.length)}" }} ]}`;
  };

  test("is 69,632 bytes at most in normal form", async () => {
    const [largest] = await frames(ofSize(69_632));
    expect(Buffer.byteLength(largest as string)).toBe(69_632);
    expect(await refusal(ofSize(69_633))).toMatchObject({
      status: 413,
      code: "PENSTOCK_EVENT_TOO_LARGE",
      message: "Event exceeds 69632 bytes (was 69633).",
    });
  });

  test("does not count white space and escapes", async () => {
    const [stored] = await frames(ofSize(69_632, "\\u0041").replace('"payload"', `${" ".repeat(100_000)}"payload"`));
    expect(Buffer.byteLength(stored as string)).toBe(69_632);
  });

  test("counts everything in the frame, not the payload alone", async () => {
    expect(await refusal({ events: [{ kind: "x".repeat(70_000) }] })).toMatchObject({ status: 413 });
    expect(await refusal({ events: [{ kind: "k", step_name: "\n".repeat(40_000) }] })).toMatchObject({ status: 413 });
    const { message } = await refusal({ events: [{ kind: "k", correlation_id: "\u00fc".repeat(1_000_000) }] });
    expect(message).toMatch(/\(was 2000\d{3}\)/);
  });
});

describe("the order of refusals", () => {
  const big = { kind: "k", payload: { t: "x".repeat(70_000) } };

  test("JSON before schema, schema of the whole batch before kinds and sizes", async () => {
    expect((await refusal('{"events":[{"kind":3}')).status).toBe(400);
    expect((await refusal({ events: [{ kind: "end" }, big, { kind: 3 }] })).status).toBe(422);
  });

  test("then the first event that is wrong decides", async () => {
    expect((await refusal({ events: [{ kind: "k" }, big, { kind: "end" }] })).status).toBe(413);
    expect((await refusal({ events: [{ kind: "k" }, { kind: "end" }, big] })).code).toBe("PENSTOCK_RESERVED_KIND");
    expect((await refusal({ events: [{ kind: "end", pipeline_run_id: "other" }] })).code).toBe("PENSTOCK_RUN_MISMATCH");
    expect((await refusal({ events: [{ ...big, kind: "end" }] })).code).toBe("PENSTOCK_RESERVED_KIND");
  });

  test("no message repeats what came", async () => {
    const secret = "hunter2hunter2";
    for (const event of [
      { kind: `${secret}\n` },
      { kind: "k", step_run_id: secret },
      { kind: "k", pipeline_run_id: secret },
      { kind: "k", index: secret },
    ]) {
      expect((await refusal({ events: [event] })).message).not.toContain(secret);
    }
    expect((await refusal(`{"events":[${secret}`)).message).not.toContain(secret);
  });
});

describe("a large body", () => {
  const events = Array.from({ length: 1000 }, (_, n) => ({ kind: "k", index: n, payload: { t: "\u00e9\u2028 ".repeat(400) } }));

  test("gives the same frames as a small one, while others have their turn", async () => {
    const body = Buffer.from(JSON.stringify({ events }, null, 1));
    expect(body.length).toBeGreaterThan(MAX_BYTES_AT_ONCE * 2);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    const large = parseBatch(body, RUN);
    expect(large).toBeInstanceOf(Promise);
    // Parsed in between, with memory of its own.
    const between = await frames({ events: [{ kind: "between" }] });
    const { entries } = await large;
    clearInterval(timer);
    expect(between[0]).toContain("between");
    expect(turns).toBeGreaterThan(0);
    const small = await Promise.all(events.map(async (event) => (await frames({ events: [event] }))[0]));
    expect(entries.map(String)).toEqual(small);
  });

  test("is not read to its end when nobody waits for it any more", async () => {
    const body = Buffer.from(JSON.stringify({ events }, null, 1));
    let asked = 0;
    expect(await parseBatch(body, RUN, () => ++asked > 2)).toEqual({ entries: [] });
    expect(asked).toBe(3);
  });

  test("is refused by rejection", async () => {
    const padding = " ".repeat(MAX_BYTES_AT_ONCE);
    expect((await refusal(`{"events":[${padding}`)).status).toBe(400);
    expect((await refusal(`{"events":[${padding}{"kind":3}]}`)).status).toBe(422);
    expect((await refusal(`{"events":[${padding}{"kind":"end"}]}`)).status).toBe(400);
  });

  test("may be all white space, one string, or one million members that mean nothing", async () => {
    expect(await frames(`{"events":[{"kind":"k","payload":{${" ".repeat(3_000_000)}}}]}`)).toHaveLength(1);
    expect((await refusal({ events: [{ kind: "k", payload: { t: "\u00e9".repeat(1_500_000) } }] })).message).toMatch(
      /\(was 3000\d{3}\)/,
    );
    expect(await frames(`{"events":[{${'"a":1,'.repeat(1_000_000)}"kind":"k"}]}`)).toHaveLength(1);
  });
});
