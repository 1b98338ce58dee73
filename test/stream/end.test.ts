import { beforeEach, describe, expect, it } from "vitest";
import { Harness, kindsIn, numbered } from "./harness.ts";

let harness: Harness;

beforeEach(() => {
  harness = new Harness();
});

/** The end entry comes, and the time in which stragglers may follow. */
function endAndWait(): void {
  harness.stream.end();
  harness.settle();
  harness.pass(6_000);
}

describe("the end of a run", () => {
  it("reaches live readers one second after its entry, behind what came meanwhile", () => {
    const reader = harness.open();
    harness.publish("token");
    harness.stream.end();
    harness.settle();
    harness.pass(500);
    harness.publish("straggler");
    harness.pass(400);
    expect(reader.ended).toBe(false);
    harness.pass(100);
    expect(kindsIn(reader.take())).toEqual(["token", "straggler", "end"]);
    expect(reader.ended).toBe(true);
  });

  it("comes at once, behind the stragglers, for who attaches later", () => {
    harness.publish("token");
    harness.stream.end();
    harness.stream.clock += 3_000;
    harness.publish("straggler");
    harness.stream.now += 60_000;
    const text = harness.open().take();
    expect(text).toMatch(/event: token\n[\s\S]*event: straggler\n[\s\S]*\n\nretry: 3600000\nevent: end\ndata: {}\n\n$/);
  });

  it("waits for a reader whose socket is full, and is not lost", () => {
    const reader = harness.open();
    reader.takes = false;
    harness.publish("token");
    endAndWait();
    expect(reader.ended).toBe(false);
    harness.drain(reader);
    expect(kindsIn(reader.take())).toEqual(["token", "end"]);
  });

  it("comes to those who read live where more stragglers followed it than a watch begins with", () => {
    harness = new Harness({}, 4);
    harness.publish("token");
    harness.stream.end();
    harness.publish(...numbered(9));
    harness.stream.now += 60_000;
    const reader = harness.open({ tail: 1 });
    expect(kindsIn(reader.take())).toEqual(["k8"]);
    harness.pass(1_000);
    expect(kindsIn(reader.take())).toEqual(["end"]);
  });

  it("is found by its mark where the entry went before it was read", () => {
    const reader = harness.open();
    harness.publish("token");
    harness.stream.end(true);
    harness.stream.expire(0);
    harness.pass(10_000);
    expect(kindsIn(reader.take()).at(-1)).toBe("end");
  });

  it("is not told to who comes when its mark was removed, for the run had gone on", () => {
    harness.publish("token");
    harness.open();
    endAndWait();
    harness.publish("resumed");
    const resumed = harness.held(2);
    // Another gateway has seen it; here it goes with the stream before it is read.
    harness.stream.setMark(null);
    harness.stream.expire(0);
    const reader = harness.open({ position: resumed });
    harness.pass(60_000);
    expect(reader.ended).toBe(false);
    expect(harness.stream.mark).toBeNull();
  });

  it("that a page tells of waits for the events before it that the ring has still to get", () => {
    const reader = harness.open();
    harness.publish(...numbered(20));
    harness.stream.end();
    // The pages for one who resumes come while the ring lags.
    const ahead = harness.join({ position: harness.held(5) });
    for (let round = 0; round < 5; round++) harness.work();
    expect(kindsIn(ahead.take())).toEqual([...numbered(14, 6), "end"]);
    expect(kindsIn(reader.take())).toEqual([...numbered(20), "end"]);
  });
});

describe("an end whose mark cannot be read, and is all that tells of it", () => {
  /** The mark is there to be read again, as the broker's watch finds out. */
  function markIsBack(): void {
    harness.stream.markIsAway = false;
    harness.gateway.run.onMark(harness.stream.mark!);
    harness.settle();
  }

  beforeEach(() => {
    harness.publish("token");
    harness.stream.end(true);
    harness.stream.expire(0);
    harness.stream.markIsAway = true;
    harness.pass(60_000);
  });

  it("is told when the mark can be read, and nothing before that", () => {
    const reader = harness.open();
    harness.pass(60_000);
    expect([reader.take(), reader.ended]).toEqual(["", false]);
    markIsBack();
    expect([kindsIn(reader.take()).at(-1), reader.ended]).toEqual(["end", true]);
  });

  it("comes behind the gap for who gave a time before it", () => {
    const reader = harness.open({ position: { id: "1-0", exact: false } });
    expect(reader.take()).toBe("");
    markIsBack();
    expect(kindsIn(reader.take())).toEqual(["gap", "end"]);
  });

  it("does not keep events from who comes", () => {
    const reader = harness.open();
    harness.publish("token");
    harness.settle();
    expect(kindsIn(reader.take())).toEqual(["token"]);
  });

  it("is none where the run has gone on, and the old mark is removed", () => {
    const reader = harness.open();
    harness.publish("resumed");
    harness.settle();
    markIsBack();
    harness.pass(60_000);
    expect([kindsIn(reader.take()), reader.ended]).toEqual([["resumed"], false]);
    expect(harness.stream.mark).toBeNull();
  });

  it("is not taken back by a page that had to go without the mark", () => {
    const reader = harness.open();
    harness.gateway.run.onMark(harness.stream.mark!);
    harness.settle();
    expect(reader.ended).toBe(true);
    expect(harness.stream.mark).not.toBeNull();
  });
});

describe("a run that goes on after its end", () => {
  it("is followed by who attaches, and does not end", () => {
    harness.publish("token");
    harness.stream.end();
    harness.stream.clock += 5_100;
    harness.publish("resumed");
    harness.stream.now += 60_000;
    const reader = harness.open();
    harness.pass(5_000);
    expect(kindsIn(reader.take())).toEqual(["token", "resumed"]);
    expect(reader.ended).toBe(false);
  });

  it("comes to rest: nothing is left to flush", () => {
    harness.open();
    endAndWait();
    const later = harness.join();
    harness.publish("resumed");
    harness.settle();
    harness.pass(100);
    expect(kindsIn(later.take())).toEqual(["resumed"]);
    expect(harness.gateway.flushDue).toBeNull();
  });

  it("has no mark, until it ends again", () => {
    harness.open();
    endAndWait();
    expect(harness.stream.mark).toBe(harness.stream.newest);
    harness.publish("resumed");
    harness.settle();
    expect(harness.stream.mark).toBeNull();
    endAndWait();
    expect(harness.stream.mark).toBe(harness.stream.newest);
  });

  it("keeps the mark of its second end, though the first was never removed", () => {
    harness.publish("token");
    harness.stream.end(true);
    const first = harness.stream.mark;
    harness.stream.clock += 6_000;
    harness.publish("resumed");
    harness.stream.end();
    harness.stream.now += 60_000;
    expect(harness.stream.mark).toBe(first);
    expect(kindsIn(harness.open().take())).toEqual(["token", "resumed", "end"]);
    expect(harness.stream.mark).toBe(harness.stream.newest);
  });

  it("is followed by who has read further than the ring has got", () => {
    harness.publish("token");
    harness.open();
    endAndWait();
    harness.publish("resumed", "more");
    const reader = harness.join({ position: harness.held(2) });
    for (let round = 0; round < 5; round++) harness.work();
    expect(kindsIn(reader.take())).toEqual(["more"]);
    harness.pass(60_000);
    expect(reader.ended).toBe(false);
  });

  it("has not ended where a rollback took the end", () => {
    const reader = harness.open();
    harness.publish("token");
    harness.stream.end();
    harness.settle();
    harness.stream.rollBack(1, 0);
    harness.pass(60_000);
    expect(kindsIn(reader.take())).toEqual(["token", "gap", "cursor"]);
    expect(reader.ended).toBe(false);
    expect(harness.stream.mark).toBeNull();
  });
});
