import { beforeEach, describe, expect, it } from "vitest";
import type { RunSettings } from "../../gateway/stream/run-host.ts";
import { CLOSED } from "../../gateway/stream/subscriber.ts";
import { release, tend } from "../../gateway/stream/tending.ts";
import { Harness, kindsIn, numbered, type OpenOptions, type Reader } from "./harness.ts";
import type { ModelGateway } from "./model-gateway.ts";
import type { ModelStream } from "./model-stream.ts";

let harness: Harness;
let stream: ModelStream;
let gateway: ModelGateway;

function begin(settings: Partial<RunSettings> = {}): void {
  harness = new Harness(settings);
  ({ stream, gateway } = harness);
}

beforeEach(() => begin());

const open = (options?: OpenOptions): Reader => harness.open(options);
const settle = () => harness.settle();
const pass = (ms: number) => harness.pass(ms);

describe("coalescing", () => {
  it("an event on a quiet stream leaves at once, those behind it together after coalesceMs", () => {
    const reader = open();
    pass(100);
    stream.publish("token");
    settle();
    expect(reader.writes).toHaveLength(1);
    stream.now += 2;
    stream.publish("token");
    settle();
    stream.now += 3;
    stream.publish("token");
    settle();
    expect(reader.writes).toHaveLength(1);
    stream.now += 6;
    settle();
    expect(reader.writes).toHaveLength(1);
    stream.now += 1;
    settle();
    expect(reader.writes).toHaveLength(2);
    expect(kindsIn(reader.writes[1]!)).toEqual(["token", "token"]);
  });

  it("a full write does not wait", () => {
    const reader = open();
    pass(100);
    stream.publish("token");
    settle();
    for (let n = 0; n < 150; n++) stream.publish("token");
    settle();
    expect(kindsIn(reader.take())).toHaveLength(151);
  });

  it("two readers at one place share the bytes of one write", () => {
    const seen: Uint8Array[] = [];
    for (let n = 0; n < 2; n++) {
      const reader = open();
      reader.write = (frames) => seen.push(frames) > 0;
    }
    pass(100);
    for (let n = 0; n < 3; n++) stream.publish("token");
    settle();
    expect(seen).toHaveLength(2);
    expect(seen[0]).toBe(seen[1]);
  });
});

describe("filtered events", () => {
  it("are told by one cursor for the last of them, a second after the first", () => {
    const reader = open({ kinds: ["token"] });
    pass(100);
    for (let n = 0; n < 5; n++) {
      stream.publish("log");
      pass(50);
    }
    expect(reader.take()).toBe("");
    pass(1_000);
    expect(reader.take()).toBe(`id: ${stream.newest}\nevent: cursor\ndata: {}\n\n`);
    pass(5_000);
    expect(reader.take()).toBe("");
  });

  it("need no cursor when an event follows", () => {
    const reader = open({ kinds: ["token"] });
    pass(100);
    stream.publish("log");
    pass(50);
    stream.publish("token");
    pass(2_000);
    expect(kindsIn(reader.take())).toEqual(["token"]);
  });

  it("are told also to who passes them while the cursors of others are on their way", () => {
    const early = open({ kinds: ["token"] });
    pass(100);
    stream.publish("log");
    pass(100);
    // The flush that is to send the cursors takes two turns; between them a new reader passes the same event.
    const other = open({ kinds: ["token"], tail: 0 });
    other.take();
    stream.now += 1_000;
    gateway.flush(1);
    const late = harness.join({ kinds: ["token"] });
    harness.serve();
    gateway.flush(1_000);
    expect(kindsIn(early.take())).toEqual(["cursor"]);
    expect(kindsIn(other.take())).toEqual([]);
    pass(1_000);
    expect(kindsIn(late.take())).toEqual(["cursor"]);
  });

  it("are told before a heartbeat and before the stream is let go", () => {
    const reader = open({ kinds: ["token"] });
    pass(100);
    stream.publish("log");
    settle();
    stream.now += 15_000;
    tend(reader.subscriber, stream.now);
    expect(reader.take()).toBe(`id: ${stream.newest}\nevent: cursor\ndata: {}\n\n: ping\n\n`);
    stream.publish("log");
    settle();
    release(reader.subscriber, "shutdown");
    expect(reader.take()).toBe(`id: ${stream.newest}\nevent: cursor\ndata: {}\n\nretry: 1500\n`);
    expect(reader.ended).toBe(true);
  });
});

describe("heartbeats", () => {
  it("come at half the interval on an idle stream, at the whole on one that carried an event within the last minute", () => {
    const reader = open();
    const pingsWithin = (ms: number) => {
      let next = 0;
      for (const until = stream.now + ms; stream.now < until; stream.now += 100) {
        if (stream.now >= next) next = tend(reader.subscriber, stream.now);
      }
      return reader.take().split(": ping\n\n").length - 1;
    };
    expect(pingsWithin(60_000)).toBe(3);
    stream.publish("token");
    settle();
    reader.take();
    expect(pingsWithin(59_900)).toBe(1);
    expect(pingsWithin(60_000)).toBe(4);
  });

  it("come in time on a stream that has become idle since the last look", () => {
    const reader = open({ kinds: ["token"] });
    pass(100);
    stream.publish("token");
    settle();
    pass(40_000);
    stream.publish("log");
    settle();
    pass(1_100);
    const written = stream.now;
    expect(kindsIn(reader.take())).toEqual(["token", "cursor"]);
    // 41 s after the event it is not idle yet, after 60 s it is.
    expect(tend(reader.subscriber, written)).toBeLessThanOrEqual(written - 41_100 + 60_000);
  });
});

describe("a stream is ended", () => {
  it("when the right to read has expired, within the next look", () => {
    const reader = open({ expiresAt: stream.now + 700 });
    expect(tend(reader.subscriber, stream.now)).toBe(stream.now + 700);
    stream.now += 700;
    tend(reader.subscriber, stream.now);
    expect(reader.take()).toBe('event: error\ndata: {"reason":"unauthorized"}\n\n');
    expect(reader.ended).toBe(true);
  });

  it("at its age, cleanly, with the time to come back", () => {
    const reader = open();
    reader.subscriber.ageAt = stream.now + 1_000;
    stream.now += 1_000;
    tend(reader.subscriber, stream.now);
    expect(reader.take()).toBe("retry: 1500\n");
    expect(reader.subscriber.state).toBe(CLOSED);
  });

  it("when its socket has taken nothing for stallSeconds, and not before", () => {
    const reader = open();
    reader.takes = false;
    stream.publish("token");
    settle();
    stream.now += 29_999;
    tend(reader.subscriber, stream.now);
    expect(reader.aborted).toBe(false);
    stream.now += 1;
    tend(reader.subscriber, stream.now);
    expect(reader.aborted).toBe(true);
  });
});

describe("an outage", () => {
  it("is told once, to those who join later too, and nothing is told when it is over and nothing was lost", () => {
    const early = open();
    stream.publish("token");
    pass(100);
    early.take();
    gateway.run.onOutage();
    settle();
    const late = open();
    settle();
    expect(kindsIn(early.take())).toEqual(["gap", "cursor"]);
    expect(kindsIn(late.take())).toEqual(["token", "gap", "cursor"]);
    stream.publish("token");
    gateway.run.onRecovered();
    pass(100);
    expect(kindsIn(early.take())).toEqual(["token"]);
    expect(kindsIn(late.take())).toEqual(["token"]);
    gateway.run.onOutage();
    settle();
    expect(kindsIn(early.take())).toEqual(["gap", "cursor"]);
  });

  it("does not end a stream that opened in its midst: it waits, and starts when the broker is back", () => {
    gateway.goAway();
    const reader = open();
    expect(kindsIn(reader.take())).toEqual(["gap"]);
    stream.publish("token");
    settle();
    expect(reader.take()).toBe("");
    gateway.comeBack(64);
    settle();
    expect(kindsIn(reader.take())).toEqual(["token"]);
  });
});

describe("where a stream begins", () => {
  const fill = (count: number) => harness.publish(...numbered(count));

  it("without a position: at the oldest kept entry", () => {
    fill(300);
    stream.trim(200);
    expect(kindsIn(open().take())).toEqual(numbered(200, 100));
  });

  it("with tail: at the last N, also beyond the ring, or with nothing but what comes", () => {
    fill(100);
    expect(kindsIn(open({ tail: 3 }).take())).toEqual(["k97", "k98", "k99"]);
    expect(kindsIn(open({ tail: 90 }).take())).toEqual(numbered(90, 10));
    const live = open({ tail: 0 });
    // Cut now, it comes back with this id and misses nothing.
    expect(live.take()).toBe(`id: ${stream.newest}\nevent: cursor\ndata: {}\n\n`);
    stream.publish("new");
    pass(100);
    expect(kindsIn(live.take())).toEqual(["new"]);
  });

  it("a wave of readers at one old place costs one read", () => {
    fill(300);
    open({ tail: 0 });
    const position = { id: stream.log[9]!.id, exact: true };
    const readers = Array.from({ length: 50 }, () => harness.join({ position }));
    harness.serve();
    expect(gateway.pageReads).toHaveLength(1);
    settle();
    for (const reader of readers) expect(kindsIn(reader.take())).toHaveLength(290);
  });
});

describe("a reader that falls off the ring", () => {
  const fallOff = (slowConsumer: RunSettings["slowConsumer"]) => {
    begin({ slowConsumer });
    const reader = open();
    reader.takes = false;
    stream.publish("first");
    settle();
    for (let n = 0; n < 100; n++) {
      stream.publish(`k${n}`);
      settle();
    }
    reader.take();
    harness.drain(reader);
    return reader;
  };

  it("is fed from history, and meets no gap", () => {
    expect(kindsIn(fallOff("replay").take())).toEqual(numbered(100));
  });

  it("is skipped ahead and told how many it missed, where the policy says gap", () => {
    const text = fallOff("gap").take();
    expect(kindsIn(text)).toEqual(["gap", ...numbered(64, 36)]);
    expect(text).toContain(`{"reason": "overflow", "from": "${stream.log[0]!.id}", "to": "${stream.log[37]!.id}", "missed": 36}`);
  });

  it("is let go, to come back with its last id, where the policy says disconnect", () => {
    const reader = fallOff("disconnect");
    expect(reader.take()).toBe("retry: 1500\n");
    expect(reader.ended).toBe(true);
  });

  it("holds no page of history while it stalls", () => {
    const reader = fallOff("replay");
    reader.takes = false;
    for (let n = 0; n < 200; n++) stream.publish("more");
    pass(20);
    expect(reader.subscriber.blocked).toBe(true);
    for (let n = 0; n < 200; n++) stream.publish("more");
    settle();
    gateway.run.drained(reader.subscriber);
    settle();
    expect(reader.subscriber.blocked).toBe(true);
    expect(reader.subscriber.page).toBeNull();
  });
});

describe("the lag", () => {
  it("is measured on what came live, once a flush, and not on what a watch begins with", () => {
    const lags: number[] = [];
    gateway.counters.lag = (milliseconds) => void lags.push(milliseconds);
    stream.publish("old");
    stream.now += 3_600_000;
    stream.clock += 3_600_000;
    open();
    expect(lags).toEqual([]);
    stream.publish("token");
    stream.publish("token");
    pass(20);
    expect(lags).toHaveLength(1);
    expect(lags[0]).toBeLessThan(1_000);
  });
});
