import { beforeEach, describe, expect, it } from "vitest";
import { cut, release, tend } from "../../gateway/stream/tending.ts";
import { Harness, kindsIn, numbered } from "./harness.ts";

let harness: Harness;

beforeEach(() => {
  harness = new Harness();
});

describe("a since", () => {
  const future = { id: "2000000-0", exact: false };

  it("that lies ahead gets what is later, and hears of no gap", () => {
    harness.publish(...numbered(3));
    const reader = harness.open({ position: future });
    harness.publish("early");
    harness.pass(60_000);
    tend(reader.subscriber, harness.stream.now);
    harness.settle();
    expect(reader.take()).toBe(": ping\n\n");
    harness.stream.clock = 3_000_000;
    harness.publish("late");
    harness.pass(100);
    expect(kindsIn(reader.take())).toEqual(["late"]);
  });

  it("that lies ahead of a run that has not begun gets what is later, too", () => {
    const reader = harness.open({ position: future });
    harness.publish("early");
    harness.settle();
    harness.stream.clock = 3_000_000;
    harness.publish("late");
    harness.pass(100);
    expect(kindsIn(reader.take())).toEqual(["late"]);
  });

  it("between two entries of the ring needs no read", () => {
    harness = new Harness({}, 4);
    harness.publish(...numbered(9));
    harness.stream.trim(3);
    harness.open({ tail: 0 });
    const reader = harness.join({ position: { id: `${harness.stream.kept()[0]!.id}1`, exact: false } });
    harness.serve();
    expect(kindsIn(reader.take())).toEqual(["k7", "k8"]);
    expect(harness.gateway.pageReads).toHaveLength(0);
  });
});

describe("an answer that comes late", () => {
  /** With nothing known of what lay before the ring, a place behind its newest entry is for the broker to judge: nothing lies there. */
  const askForNothing = (ringEvents: number) => {
    harness = new Harness({ ringEvents });
    harness.publish("trimmed", "kept");
    harness.stream.trim(1);
    harness.open({ tail: 0 });
    harness.stream.clock += 1_000;
    const reader = harness.join({ position: { id: `${harness.stream.clock - 500}-0`, exact: false } });
    harness.serve();
    for (let n = 0; n < harness.gateway.pageReads.length; n++) harness.gateway.lookUp(n);
    return reader;
  };

  it("does not cost what the ring has got since", () => {
    const reader = askForNothing(64);
    harness.publish("meanwhile");
    harness.settle();
    expect(kindsIn(reader.take())).toEqual(["meanwhile"]);
  });

  it("is asked for again where the ring has gone on too far to follow", () => {
    const reader = askForNothing(8);
    harness.publish(...numbered(20));
    harness.settle();
    expect(kindsIn(reader.take())).toEqual(numbered(20));
  });
});

describe("a position newer than the stream", () => {
  it.each([0, 1])("is judged by what the broker says after the request came (entries there: %i)", (count) => {
    harness.publish(...numbered(count));
    harness.open();
    const position = { id: `${1_000_002 + count}-0`, exact: true };
    const early = harness.join({ position });
    harness.serve();
    harness.gateway.lookUp(0);
    harness.publish("one", "two", "three");
    expect(harness.held(count + 1)).toEqual(position);
    const late = harness.join({ position });
    harness.serve();
    harness.settle();
    expect(kindsIn(early.take()).at(0)).toBe("gap");
    expect(kindsIn(late.take())).toEqual(["three"]);
  });
});

describe("a loss", () => {
  it("that was told to a full socket is not told again, and what came meanwhile is not lost", () => {
    harness.publish("old", "held");
    const held = harness.held(1);
    harness.stream.rollBack(1, 0);
    const reader = harness.join({ position: held });
    reader.takes = false;
    harness.settle();
    expect(kindsIn(reader.take())).toEqual(["gap"]);
    harness.stream.clock = 0;
    harness.publish("new");
    harness.settle();
    harness.drain(reader);
    expect(kindsIn(reader.take())).toEqual(["new"]);
  });

  it("found late is told with the place where it lies", () => {
    const reader = harness.open();
    harness.publish("first");
    harness.settle();
    harness.publish("gone", "last");
    harness.stream.delete(1);
    harness.gateway.read(64, false);
    harness.stream.now += 100;
    harness.work();
    expect(kindsIn(reader.take())).toEqual(["first", "last"]);
    harness.pass(100);
    const [first, , last] = harness.stream.everything;
    expect(reader.take()).toContain(`{"reason": "retention", "from": "${first!.id}", "to": "${last!.id}", "missed": 1}`);
  });

  it("found late is told also to who has left the ring before it came by", () => {
    harness = new Harness({ ringEvents: 8 });
    const reader = harness.open();
    harness.publish("first");
    harness.pass(100);
    harness.publish("gone", "second");
    harness.stream.delete(1);
    harness.gateway.read(64, false);
    harness.stream.now += 100;
    reader.takes = false;
    harness.work();
    expect(kindsIn(reader.take())).toEqual(["first", "second"]);
    harness.publish(...numbered(20));
    harness.pass(100);
    harness.drain(reader);
    const [first, , second] = harness.stream.everything;
    const text = reader.take();
    expect(text).toContain(`"from": "${first!.id}", "to": "${second!.id}"`);
    expect(kindsIn(text)).toEqual(["gap", ...numbered(20)]);
  });

  it("found late is told also to who is fed from history when it is found", () => {
    harness = new Harness({ ringEvents: 8 });
    const reader = harness.open();
    harness.publish("first");
    harness.pass(100);
    harness.publish("gone", "second");
    harness.stream.delete(1);
    harness.gateway.read(64, false);
    reader.takes = false;
    harness.stream.now += 100;
    harness.work();
    expect(kindsIn(reader.take())).toEqual(["first", "second"]);
    harness.publish(...numbered(20));
    harness.gateway.read(64, false);
    reader.takes = true;
    harness.gateway.run.drained(reader.subscriber);
    harness.serve();
    expect(harness.gateway.pageReads).toHaveLength(1);
    harness.gateway.read(64);
    const { newest } = harness.stream;
    harness.publish("last");
    harness.pass(100);
    const [first] = harness.stream.everything;
    const text = reader.take();
    expect(text).toContain(`{"reason": "retention", "from": "${first!.id}", "to": "${newest}", "missed": 1}`);
    expect(kindsIn(text)).toEqual([...numbered(20), "last", "gap", "cursor"]);
  });

  it("is told to who stands behind a rollback, without an id, when what it was to get next is gone", () => {
    harness = new Harness({ ringEvents: 8 });
    const reader = harness.open();
    harness.publish("common", "lost");
    harness.settle();
    harness.stream.rollBack(1, 0);
    harness.publish("next");
    reader.takes = false;
    harness.pass(100);
    expect(kindsIn(reader.take())).toEqual(["common", "lost", "gap"]);
    harness.publish(...numbered(20));
    harness.pass(100);
    harness.stream.expire(0);
    harness.publish("new");
    reader.takes = true;
    harness.gateway.run.drained(reader.subscriber);
    for (let round = 0; round < 2; round++) harness.work();
    const text = reader.take();
    expect(text).toContain(`{"reason": "retention", "from": null, "to": "${harness.stream.newest}", "missed": null}`);
    expect(kindsIn(text)).toEqual(["gap", "new"]);
  });

  it("is told to who had found nothing, when the stream began anew below that before the answer came", () => {
    harness.publish("gone", "gone");
    harness.stream.trim(0);
    harness.gateway.read(64);
    const reader = harness.join();
    harness.serve();
    harness.gateway.lookUp(0);
    harness.stream.expire(0);
    harness.publish("gone");
    harness.stream.rollBack(1, 1_000);
    harness.publish("low", "high", "higher");
    harness.pass(100);
    expect(reader.take()).toContain(`"reason": "rollback", "from": "${harness.stream.everything[1]!.id}"`);
  });

  it("in a former tail is told to who resumes before it, not to who begins there", () => {
    harness.publish("first", "gone", "last");
    harness.stream.delete(1);
    expect(kindsIn(harness.open().take())).toEqual(["first", "last"]);
    expect(kindsIn(harness.open({ position: harness.held(0) }).take())).toEqual(["gap", "last"]);
  });

  it("before the first entry is not told to who names no place and comes later", () => {
    const early = harness.open();
    harness.publish("gone", "kept");
    harness.stream.trim(1);
    harness.settle();
    expect(kindsIn(early.take())).toEqual(["gap", "kept"]);
    expect(kindsIn(harness.open().take())).toEqual(["kept"]);
    expect(kindsIn(harness.open({ tail: 5 }).take())).toEqual(["kept"]);
  });
});

describe("a reader behind a rollback that falls off the ring before an event has passed", () => {
  it("is fed from there, and not with what it had before", () => {
    harness = new Harness({ ringEvents: 8 });
    const reader = harness.open();
    harness.publish("common", "lost", "lost", "lost");
    harness.settle();
    harness.stream.rollBack(3, 1_000);
    harness.publish("new");
    reader.takes = false;
    harness.pass(100);
    expect(kindsIn(reader.take())).toEqual(["common", "lost", "lost", "lost", "gap"]);
    harness.publish(...numbered(20));
    harness.pass(100);
    harness.drain(reader);
    expect(kindsIn(reader.take())).toEqual(["new", ...numbered(20)]);
  });
});

describe("a reader that is to begin with the last events and falls off the ring before it got one", () => {
  it("begins where it was to begin", () => {
    harness = new Harness({ ringEvents: 8 });
    harness.publish(...numbered(8));
    harness.gateway.goAway();
    const reader = harness.join({ tail: 2 });
    reader.takes = false;
    harness.work();
    expect(kindsIn(reader.take())).toEqual(["gap"]);
    harness.gateway.comeBack(64);
    harness.work();
    harness.publish(...numbered(20, 8));
    harness.settle();
    harness.drain(reader);
    expect(kindsIn(reader.take())).toEqual(numbered(22, 6));
  });
});

describe("a reader that stalls", () => {
  it("holds no page, even if a heartbeat was what its socket had no room for", () => {
    harness.publish(...numbered(300));
    harness.open({ tail: 0 });
    const reader = harness.join();
    harness.serve();
    harness.gateway.answerPage();
    expect(reader.subscriber.page).not.toBeNull();
    reader.takes = false;
    harness.stream.now += 30_000;
    tend(reader.subscriber, harness.stream.now);
    expect(reader.subscriber.page).toBeNull();
    harness.drain(reader);
    expect(kindsIn(reader.take())).toEqual(numbered(300));
  });

  it("goes as soon as it drains when it has become old or the server shuts down", () => {
    for (const leave of ["age", "shutdown"] as const) {
      const reader = harness.open();
      reader.takes = false;
      harness.publish("token");
      harness.pass(100);
      reader.take();
      harness.publish("later");
      harness.pass(100);
      if (leave === "age") {
        reader.subscriber.ageAt = harness.stream.now;
        tend(reader.subscriber, harness.stream.now);
      } else expect(release(reader.subscriber, "shutdown")).toBe(false);
      expect(reader.ended).toBe(false);
      harness.drain(reader);
      expect(reader.take()).toBe("retry: 1500\n");
      expect(reader.ended).toBe(true);
    }
  });
});

describe("pages of history", () => {
  it("are kept for the moment in which others may want them, and not longer", () => {
    harness.publish(...numbered(300));
    harness.open();
    const { run } = harness.gateway;
    expect(run.cool(harness.stream.now)).toBe(true);
    expect(run.cool(harness.stream.now + 2_001)).toBe(false);
  });

  it("are let go of by a stream that is over", () => {
    harness.publish(...numbered(300));
    harness.open({ tail: 0 });
    const reader = harness.join();
    harness.serve();
    harness.gateway.answerPage();
    cut(reader.subscriber, "penstock");
    expect(reader.subscriber.page).toBeNull();
    expect(tend(reader.subscriber, harness.stream.now)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("a reader of a long history", () => {
  it("goes on from page to page, though the ring lags", () => {
    harness.open();
    harness.publish(...numbered(600));
    const reader = harness.join({ position: { id: "1-0", exact: false } });
    for (let round = 0; round < 5; round++) harness.work();
    expect(kindsIn(reader.take())).toEqual(numbered(600));
    harness.settle();
    expect(reader.take()).toBe("");
  });

  it("lets others have their turn, though its socket takes everything", () => {
    const big = "x".repeat(8_000);
    for (let n = 0; n < 200; n++) harness.stream.publish(big);
    harness.open({ tail: 0 });
    const reader = harness.join();
    harness.serve();
    harness.gateway.answerPage();
    harness.gateway.serveOne();
    expect(reader.writes.length).toBeLessThan(20);
    harness.settle();
    expect(kindsIn(reader.take())).toHaveLength(200);
  });
});

describe("history that cannot be read", () => {
  it("is an outage for those who need it, not for those who read live", () => {
    harness.publish(...numbered(100));
    const live = harness.open({ tail: 0 });
    live.take();
    const behind = harness.join({ position: harness.held(10) });
    harness.serve();
    harness.gateway.failPage();
    harness.serve();
    expect(kindsIn(behind.take())).toEqual(["gap"]);
    expect(live.take()).toBe("");
    harness.gateway.retry();
    harness.settle();
    expect(kindsIn(behind.take())).toEqual(numbered(89, 11));
  });

  it("is asked for again by one timer, however many places are wanted", () => {
    harness.publish(...numbered(100));
    harness.open({ tail: 0 });
    for (let n = 0; n < 10; n++) harness.join({ position: harness.held(n) });
    harness.serve();
    expect(harness.gateway.pageReads).toHaveLength(10);
    while (harness.gateway.pageReads.length > 0) harness.gateway.failPage();
    expect(harness.gateway.retries).toHaveLength(1);
  });

  it("is no outage any more when nobody needs it", () => {
    harness = new Harness({}, 2);
    harness.publish(...numbered(5));
    harness.open({ tail: 0 });
    const reader = harness.join({ tail: 4 });
    harness.serve();
    harness.gateway.answerTail(true);
    harness.serve();
    expect(harness.gateway.run.isInOutage).toBe(true);
    // Meanwhile the ring has got what it asks for.
    harness.publish(...numbered(5, 5));
    harness.gateway.read(64);
    for (let n = 0; n < 2; n++) {
      harness.gateway.retry();
      harness.work();
    }
    expect(kindsIn(reader.take())).toEqual(["gap", ...numbered(4, 6)]);
    expect(harness.gateway.run.isInOutage).toBe(false);
    expect(harness.gateway.isAtRest).toBe(true);
  });
});
