import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameDecoder, RunSpelling } from "./frame-decoder.ts";
import { Judge } from "./judge.ts";
import { createTally, faultsOf, type Tally } from "./tally.ts";

const RUN = "5d1f7c0e-2b7a-4c61-9d1e-0f6a1b2c3d4e";
const END = "retry: 3600000\nevent: end\ndata: {}\n\n";

function event(n: number, id = `1700000000000-${n}`, run = RUN): string {
  const data = `{"pipeline_run_id":"${run}","step_run_id":null,"step_name":null,"kind":"bench","correlation_id":null,"index":null,"payload":{"n":${n},"t":5,"pad":"x"}}`;
  return `id: ${id}\nevent: bench\ndata: ${data}\n\n`;
}

/** `from` and `to` are numbers of events, whose ids are made of them. */
function gap(reason: string, from: number | null, to: number | null, missed: number | null): string {
  const id = (n: number | null): string | null => (n === null ? null : `1700000000000-${n}`);
  return `event: gap\ndata: ${JSON.stringify({ reason, from: id(from), to: id(to), missed })}\n\n`;
}

const cursor = (n: number): string => `id: 1700000000000-${n}\nevent: cursor\ndata: {}\n\n`;

interface Reading {
  readonly published: number;
  readonly unconfirmed?: readonly number[];
  /** The reader left before its run was ended. */
  readonly isCutShort?: boolean;
}

/** What a reader of these frames is found to have got. */
function judge(frames: string, { published, unconfirmed = [], isCutShort = false }: Reading): Tally {
  const tally = createTally();
  const reader = new Judge(tally);
  const decoder = new FrameDecoder(
    {
      event: (milliseconds, sequence, n) => reader.event(milliseconds, sequence, n),
      frame: (name, milliseconds, sequence, data) => reader.frame(name, milliseconds, sequence, data),
      unreadable: (what) => reader.unreadable(what),
    },
    new RunSpelling(RUN),
  );
  const bytes = Buffer.from(frames);
  decoder.feed(bytes, 0, bytes.length);
  reader.finish({ published, unconfirmed: new Set(unconfirmed) }, !isCutShort);
  return tally;
}

const faults = (frames: string, reading: Reading): string[] => faultsOf(judge(frames, reading));

describe("a stream without fault", () => {
  it("has each event once, in order, and its end", () => {
    const tally = judge(event(0) + event(1) + event(2) + END, { published: 3 });
    expect(faultsOf(tally)).toEqual([]);
    expect(tally).toMatchObject({ events: 3, missed: 0 });
  });

  it("may begin with retry and comments, and have heartbeats", () => {
    expect(faults(`retry: 1427\n: ok\n:\n${event(0)}:\n: ping\n\n${event(1)}${END}`, { published: 2 })).toEqual([]);
  });

  it("may lack what the gateway did not confirm, or have it", () => {
    expect(faults(event(0) + event(2) + END, { published: 4, unconfirmed: [1, 3] })).toEqual([]);
    expect(faults(event(0) + event(1) + END, { published: 2, unconfirmed: [1] })).toEqual([]);
  });

  it("may stop anywhere when the reader left", () => {
    expect(faults(event(0), { published: 9, isCutShort: true })).toEqual([]);
  });
});

describe("a stream with a fault", () => {
  it.each([
    ["an event doubled at once", event(0) + event(1) + event(1) + event(2) + END, ["events doubled: 1"]],
    ["an event doubled later", event(0) + event(1) + event(2) + event(0) + END, ["events doubled: 1"]],
    [
      "an event doubled under a new id",
      event(0) + event(1) + event(1, "1700000000000-7") + event(2, "1700000000000-8") + END,
      ["events doubled: 1"],
    ],
    ["an event lost in the middle", event(0) + event(2) + END, ["events lost without a gap: 1"]],
    ["an event lost at the beginning", event(1) + event(2) + END, ["events lost without a gap: 1"]],
    ["events lost at the end", event(0) + END, ["events lost without a gap: 2"]],
    ["two events that changed places", event(1) + event(0) + event(2) + END, ["events out of order: 1"]],
    ["an id that falls", event(0) + event(1, "1600000000000-0") + event(2) + END, ["events out of order: 1"]],
    ["an id that stays", event(0) + event(1, "1700000000000-0") + event(2) + END, ["events out of order: 1"]],
    ["no id", event(0) + event(1).replace(/^id.*\n/, "") + event(2) + END, ["events out of order: 1"]],
    ["no end", event(0) + event(1) + event(2), ["readers that heard no end of their run: 1"]],
    ["an event behind the end", event(0) + event(1) + END + event(2), ["frames behind the end: 1"]],
    ["two ends", event(0) + event(1) + event(2) + END + END, ["frames behind the end: 1"]],
    [
      "another run's event",
      event(0) + event(1) + event(2) + event(3, undefined, "other") + END,
      ["frames that cannot be read: 1"],
    ],
    [
      "an event cut short",
      event(0) + event(1).replace('"x"}}', '"x') + event(2) + END,
      ["events lost without a gap: 1", "frames that cannot be read: 1"],
    ],
    [
      "an id that is none",
      event(0) + event(1) + event(2, "abc") + END,
      ["events out of order: 1", "frames that cannot be read: 1"],
    ],
    ["a gap that is none", `${event(0)}event: gap\ndata: {}\n\n${event(1)}${event(2)}${END}`, ["frames that cannot be read: 1"]],
  ])("%s", (_, frames, expected) => {
    expect(faults(frames, { published: 3 })).toEqual(expected);
  });

  it("is told in words, a few of them", () => {
    const frames = Array.from({ length: 9 }, (_, n) => event(n, `wrong-${n}`)).join("");
    const { unreadable, examples } = judge(frames, { published: 9 });
    expect(unreadable).toBe(9);
    expect(examples).toHaveLength(3);
    expect(examples[0]).toBe('an id is "wrong-0"');
  });
});

describe("a gap", () => {
  it.each([
    ["covers a loss that it names", event(0) + gap("retention", 0, 4, 3) + event(4) + END],
    ["covers a loss whose number it does not know", event(0) + gap("retention", 0, 4, null) + event(4) + END],
    ["covers a loss from the beginning", gap("retention", null, 4, 4) + event(4) + END],
    ["that names no end covers all until the next event", event(0) + gap("retention", 0, null, null) + event(4) + END],
    ["that comes late covers a loss before it", event(0) + event(4) + gap("retention", 0, 4, 3) + END],
    [
      "covers together with another",
      event(0) + gap("retention", 0, null, null) + cursor(2) + gap("overflow", 2, 4, 1) + event(4) + END,
    ],
    ["covers what is lost at the end", event(0) + gap("retention", 0, null, null) + cursor(9) + END],
    ["may be wider than the loss", event(0) + event(1) + gap("retention", 0, 4, 2) + event(4) + END],
    [
      "may say that nothing is known to be missing",
      event(0) + gap("retention", 0, null, null) + [1, 2, 3, 4].map((n) => event(n)).join("") + END,
    ],
    ["of a rollback lets ids fall", event(0, "1800000000000-0") + gap("rollback", 0, null, null) + event(4) + END],
  ])("%s", (_, frames) => {
    expect(faults(frames, { published: 5 })).toEqual([]);
  });

  it.each([
    ["ends before the loss does", event(0) + gap("retention", 0, 2, 1) + event(4) + END, ["events lost without a gap: 3"]],
    ["begins behind the loss", event(0) + gap("retention", 2, 4, 1) + event(4) + END, ["events lost without a gap: 3"]],
    ["tells of fewer than are lost", event(0) + gap("retention", 0, 4, 1) + event(4) + END, ["events lost without a gap: 2"]],
    [
      "leaves out the event where it meets another",
      event(0) + gap("retention", 0, 2, 1) + gap("retention", 2, 4, 1) + event(4) + END,
      ["events lost without a gap: 3"],
    ],
    ["of an outage covers nothing", event(0) + gap("outage", 0, null, null) + event(4) + END, ["events lost without a gap: 3"]],
    ["of a shutdown covers nothing", event(0) + gap("shutdown", 0, null, null) + END, ["events lost without a gap: 4"]],
    [
      "covers only what it was told for",
      event(0) + gap("retention", 0, null, null) + event(2) + event(4) + END,
      ["events lost without a gap: 1"],
    ],
    [
      "is false where nothing is missing",
      event(0) + gap("retention", 0, 1, 2) + [1, 2, 3, 4].map((n) => event(n)).join("") + END,
      ["gaps where nothing was missing: 1"],
    ],
    [
      "excuses the order of one event, not of all",
      event(0) + gap("rollback", 0, null, null) + event(4, "1600000000000-5") + event(3, "1600000000000-4") + END,
      ["events out of order: 1"],
    ],
  ])("%s", (_, frames, expected) => {
    expect(faults(frames, { published: 5 })).toEqual(expected);
  });

  it("is counted, with what it told", () => {
    const { gaps, missed } = judge(event(0) + gap("outage", 0, null, null) + gap("retention", 0, 4, 3) + event(4) + END, {
      published: 5,
    });
    expect(Object.fromEntries(gaps)).toEqual({ outage: 1, retention: 1 });
    expect(missed).toBe(3);
  });
});

it("counts exactly what is missing without a gap, and what is doubled, for any stream", () => {
  const fate = fc.constantFrom("comes", "is lost", "is told", "is doubled", "comes");
  fc.assert(
    fc.property(fc.array(fate, { minLength: 1, maxLength: 30 }), (fates) => {
      let frames = "";
      for (let n = 0; n < fates.length; n++) {
        const before = fates[n - 1];
        // A stretch is told of as a whole, by its own gap.
        const isTold = fates[n] === "is told" && before !== "is told";
        const next = fates.findIndex((one, index) => index > n && one !== "is told");
        if (isTold) frames += gap("retention", n === 0 ? null : n - 1, next < 0 ? null : next, null);
        if (fates[n] === "comes" || fates[n] === "is doubled") frames += event(n);
        if (fates[n] === "is doubled") frames += event(n);
      }
      const tally = judge(frames + END, { published: fates.length });
      expect(tally.doubled).toBe(fates.filter((one) => one === "is doubled").length);
      expect(tally.lost).toBe(lostIn(fates));
      expect(tally).toMatchObject({ disordered: 0, falseGaps: 0, unreadable: 0, endless: 0 });
    }),
  );
});

/** A hole between two events that is told of in part is lost as a whole: nobody can say which of its events the gap meant. */
function lostIn(fates: readonly string[]): number {
  let lost = 0;
  let hole: string[] = [];
  for (const one of [...fates, "comes"]) {
    if (one === "comes" || one === "is doubled") {
      if (hole.includes("is lost")) lost += hole.length;
      hole = [];
    } else hole.push(one);
  }
  return lost;
}
