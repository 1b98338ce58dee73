import { beforeEach, describe, expect, it } from "vitest";
import type { Position } from "../../gateway/broker/broker.ts";
import { makeFilter } from "../../gateway/stream/filter.ts";
import type { RunSettings } from "../../gateway/stream/run-host.ts";
import type { Sink } from "../../gateway/stream/sink.ts";
import { CLOSED, Subscriber } from "../../gateway/stream/subscriber.ts";
import { ModelGateway, ModelStream } from "./model.ts";

const SETTINGS: RunSettings = {
  ringEvents: 64,
  ringBytes: 1_000_000,
  coalesceMs: 10,
  slowConsumer: "replay",
  pageEntries: 256,
  heartbeatMs: 30_000,
  stallMs: 30_000,
};

/** One reader with the bytes that it got. */
class Reader implements Sink {
  readonly writes: string[] = [];
  takes = true;
  aborted = false;
  ended = false;
  subscriber!: Subscriber;

  write(frames: Uint8Array): boolean {
    this.writes.push(Buffer.from(frames).toString());
    return this.takes;
  }
  end(last: Uint8Array | null): void {
    if (last !== null) this.writes.push(Buffer.from(last).toString());
    this.ended = true;
  }
  abort(): void {
    this.aborted = true;
  }
  /** What came since the last call. */
  take(): string {
    return this.writes.splice(0).join("");
  }
}

let stream: ModelStream;
let gateway: ModelGateway;

beforeEach(() => {
  stream = new ModelStream();
  gateway = new ModelGateway(stream, SETTINGS);
});

function open(options: { kinds?: string[]; position?: Position; tail?: number; expiresAt?: number } = {}): Reader {
  const reader = new Reader();
  const filter = makeFilter(options.kinds ?? [], [], []);
  const subscriber = new Subscriber(
    gateway.run,
    reader,
    filter,
    options.position ?? null,
    options.tail ?? null,
    options.expiresAt ?? null,
    stream.now,
  );
  reader.subscriber = subscriber;
  gateway.run.join(subscriber);
  settle();
  return reader;
}

/** Lets everything happen that is due now. */
function settle(): void {
  for (let round = 0; round < 5; round++) {
    gateway.read(64);
    while (gateway.pageReads.length > 0) gateway.answerPage();
    while (gateway.toServe.length > 0) gateway.serveOne();
    gateway.flush(1_000);
  }
}

function pass(ms: number): void {
  stream.now += ms;
  stream.clock += ms;
  settle();
}

function kindsIn(text: string): string[] {
  return [...text.matchAll(/^event: (.*)$/gm)].map((match) => match[1]!);
}

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

  it("are told before a heartbeat and before the stream is let go", () => {
    const reader = open({ kinds: ["token"] });
    pass(100);
    stream.publish("log");
    settle();
    stream.now += 15_000;
    gateway.run.tend(reader.subscriber, stream.now);
    expect(reader.take()).toBe(`id: ${stream.newest}\nevent: cursor\ndata: {}\n\n: ping\n\n`);
    stream.publish("log");
    settle();
    gateway.run.release(reader.subscriber, "shutdown", stream.now);
    expect(reader.take()).toBe(`id: ${stream.newest}\nevent: cursor\ndata: {}\n\nretry: 1500\n`);
    expect(reader.ended).toBe(true);
  });
});

describe("the end of a run", () => {
  it("reaches live readers one second after its entry, behind what came meanwhile", () => {
    const reader = open();
    stream.publish("token");
    stream.end();
    settle();
    pass(500);
    stream.publish("straggler");
    pass(400);
    expect(reader.ended).toBe(false);
    pass(100);
    expect(kindsIn(reader.take())).toEqual(["token", "straggler", "end"]);
    expect(reader.ended).toBe(true);
  });

  it("comes at once, behind the stragglers, for who attaches later", () => {
    stream.publish("token");
    stream.end();
    stream.clock += 3_000;
    stream.publish("straggler");
    stream.now += 60_000;
    const reader = open();
    expect(reader.take()).toMatch(/event: token\n[\s\S]*event: straggler\n[\s\S]*\n\nretry: 3600000\nevent: end\ndata: {}\n\n$/);
  });

  it("is taken back by an entry that is too late to be a straggler", () => {
    stream.publish("token");
    stream.end();
    stream.clock += 5_100;
    stream.publish("resumed");
    stream.now += 60_000;
    const reader = open();
    pass(5_000);
    expect(kindsIn(reader.take())).toEqual(["token", "resumed"]);
    expect(reader.ended).toBe(false);
  });

  it("waits for a reader whose socket is full, and is not lost", () => {
    const reader = open();
    reader.takes = false;
    stream.publish("token");
    stream.end();
    pass(10_000);
    expect(reader.ended).toBe(false);
    reader.takes = true;
    gateway.run.drained(reader.subscriber);
    settle();
    expect(kindsIn(reader.take())).toEqual(["token", "end"]);
  });
});

describe("heartbeats", () => {
  it("come at half the interval on an idle stream, at the whole on one that carried an event within the last minute", () => {
    const reader = open();
    const pingsWithin = (ms: number) => {
      let next = 0;
      for (const until = stream.now + ms; stream.now < until; stream.now += 100) {
        if (stream.now >= next) next = gateway.run.tend(reader.subscriber, stream.now);
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
});

describe("a stream is ended", () => {
  it("when the right to read has expired, within the next look", () => {
    const reader = open({ expiresAt: stream.now + 700 });
    expect(gateway.run.tend(reader.subscriber, stream.now)).toBe(stream.now + 700);
    stream.now += 700;
    gateway.run.tend(reader.subscriber, stream.now);
    expect(reader.take()).toBe('event: error\ndata: {"reason":"unauthorized"}\n\n');
    expect(reader.ended).toBe(true);
  });

  it("at its age, cleanly, with the time to come back", () => {
    const reader = open();
    reader.subscriber.ageAt = stream.now + 1_000;
    stream.now += 1_000;
    gateway.run.tend(reader.subscriber, stream.now);
    expect(reader.take()).toBe("retry: 1500\n");
    expect(reader.subscriber.state).toBe(CLOSED);
  });

  it("when its socket has taken nothing for stallSeconds, and not before", () => {
    const reader = open();
    reader.takes = false;
    stream.publish("token");
    settle();
    stream.now += 29_999;
    gateway.run.tend(reader.subscriber, stream.now);
    expect(reader.aborted).toBe(false);
    stream.now += 1;
    gateway.run.tend(reader.subscriber, stream.now);
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
    const lonely = new ModelGateway(stream, SETTINGS);
    gateway = lonely;
    lonely.read = () => {};
    const reader = open();
    lonely.run.onOutage();
    settle();
    expect(kindsIn(reader.take())).toEqual(["gap"]);
    stream.publish("token");
    lonely.read = ModelGateway.prototype.read;
    lonely.run.onRecovered();
    settle();
    expect(kindsIn(reader.take())).toEqual(["token"]);
  });
});

describe("where a stream begins", () => {
  const fill = (count: number) => {
    for (let n = 0; n < count; n++) stream.publish(`k${n}`);
  };

  it("without a position: at the oldest kept entry", () => {
    fill(300);
    stream.trim(200);
    expect(kindsIn(open().take())).toEqual(Array.from({ length: 200 }, (_, n) => `k${n + 100}`));
  });

  it("with tail: at the last N, also beyond the ring, or with nothing but what comes", () => {
    fill(100);
    expect(kindsIn(open({ tail: 3 }).take())).toEqual(["k97", "k98", "k99"]);
    expect(kindsIn(open({ tail: 90 }).take())).toEqual(Array.from({ length: 90 }, (_, n) => `k${n + 10}`));
    const live = open({ tail: 0 });
    expect(live.take()).toBe("");
    stream.publish("new");
    pass(100);
    expect(kindsIn(live.take())).toEqual(["new"]);
  });

  it("a wave of readers at one old place costs one read", () => {
    fill(300);
    open({ tail: 0 });
    const position = { id: stream.log[9]!.id, exact: true };
    const readers: Reader[] = [];
    for (let n = 0; n < 50; n++) {
      const reader = new Reader();
      reader.subscriber = new Subscriber(gateway.run, reader, makeFilter([], [], []), position, null, null, stream.now);
      gateway.run.join(reader.subscriber);
      readers.push(reader);
    }
    while (gateway.toServe.length > 0) gateway.serveOne();
    expect(gateway.pageReads).toHaveLength(1);
    settle();
    for (const reader of readers) expect(kindsIn(reader.take())).toHaveLength(290);
  });
});

describe("a reader that falls off the ring", () => {
  const fallOff = (slowConsumer: RunSettings["slowConsumer"]) => {
    gateway = new ModelGateway(stream, { ...SETTINGS, slowConsumer });
    const reader = open();
    reader.takes = false;
    stream.publish("first");
    settle();
    for (let n = 0; n < 100; n++) {
      stream.publish(`k${n}`);
      settle();
    }
    reader.takes = true;
    reader.take();
    gateway.run.drained(reader.subscriber);
    settle();
    return reader;
  };

  it("is fed from history, and meets no gap", () => {
    expect(kindsIn(fallOff("replay").take())).toEqual(Array.from({ length: 100 }, (_, n) => `k${n}`));
  });

  it("is skipped ahead and told how many it missed, where the policy says gap", () => {
    const text = fallOff("gap").take();
    expect(kindsIn(text)).toEqual(["gap", ...Array.from({ length: 64 }, (_, n) => `k${n + 36}`)]);
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
