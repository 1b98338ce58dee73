import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { RequestError } from "../../gateway/errors.ts";
import type { Slot } from "../../gateway/worker/streams.ts";
import { waitFor } from "../support/wait-for.ts";
import { Client, TableWorld } from "./table-world.ts";

let world: TableWorld;

afterEach(async () => {
  await world.close();
  vi.restoreAllMocks();
});

function begin(...options: ConstructorParameters<typeof TableWorld>): TableWorld {
  world = new TableWorld(...options);
  return world;
}

/** Code of the error that a claim is refused with. */
function refusal(runId: string): string | null {
  try {
    (world.table.claim(runId) as Slot).release();
    return null;
  } catch (error) {
    return (error as RequestError).code;
  }
}

describe("places", () => {
  it("are 100 a run and as many a worker as configured, and come back when a stream is over, however it ended", async () => {
    begin({ maxConnections: 102 });
    const clients = Array.from({ length: 100 }, () => world.open("full"));
    expect(refusal("full")).toBe("PENSTOCK_TOO_MANY_SUBSCRIBERS");
    world.open("other");
    expect(refusal("other")).toBeNull();
    world.open("other");
    expect(refusal("other")).toBe("PENSTOCK_AT_CAPACITY");
    clients[0]!.subscription.closed();
    clients[0]!.subscription.closed();
    expect(refusal("full")).toBeNull();
    await world.publish("full", ["token"]);
    await world.broker.end("full");
    await waitFor("all are told the end", () => clients.slice(1).every((client) => client.ended));
    expect(world.table.connections).toBe(2);
    expect(world.closed).toEqual(["client", ...Array.from({ length: 99 }, () => "end")]);
    for (let n = 0; n < 100; n++) world.open("full");
    expect(refusal("other")).toBe("PENSTOCK_AT_CAPACITY");
  });

  it("come back when the broker cannot even begin to watch", () => {
    begin({ maxConnections: 1 });
    const watch = vi.spyOn(world.broker, "watch").mockImplementation(() => {
      throw new Error("no room");
    });
    for (let n = 0; n < 3; n++) expect(() => world.open("run")).toThrow("no room");
    watch.mockRestore();
    world.open("run");
    expect(world.table.connections).toBe(1);
  });
});

describe("a run that its last reader has left", () => {
  it("is kept for the grace: a return costs no read", async () => {
    begin();
    await world.publish("run", ["one", "two"]);
    const first = world.open("run");
    await waitFor("it has both", () => first.kinds.length === 2);
    first.subscription.closed();
    await world.publish("run", ["three"]);
    const lastId = /^id: (.*)$/m.exec(first.text)![1]!;
    const second = world.open("run", { position: { id: lastId, exact: true } });
    await waitFor("it has the rest", () => second.kinds.length === 2);
    expect(second.kinds).toEqual(["two", "three"]);
    expect(world).toMatchObject({ watches: 1, pageReads: 0 });
  });

  it("is dropped after it, with its ring, and is watched anew by who comes then", async () => {
    begin({ idleGraceMs: 100 });
    await world.publish("run", ["one"]);
    world.open("run").subscription.closed();
    await waitFor("it is dropped", () => world.table.runs === 0);
    expect(world.table.ringBytes).toBe(0);
    const client = world.open("run");
    await waitFor("it is there again", () => client.kinds.length === 1);
    expect(world.watches).toBe(2);
  });

  it("stays while a new reader holds it", async () => {
    begin({ idleGraceMs: 100 });
    const first = world.open("run");
    first.subscription.closed();
    const second = world.open("run");
    const other = world.open("other");
    other.subscription.closed();
    await waitFor("the other is dropped", () => world.table.runs === 1);
    await world.publish("run", ["token"]);
    await waitFor("it reads on", () => second.kinds.length === 1);
    expect(world.watches).toBe(2);
  });
});

describe("a fan-out to thousands", () => {
  it("is spread over turns of the loop, so that none serves more than 500", async () => {
    begin({}, 5_000);
    let turn = 0;
    let counting = true;
    const perTurn = new Map<number, number>();
    const count = () => {
      turn++;
      if (counting) setImmediate(count);
    };
    class Counted extends Client {
      override write(frames: Uint8Array): boolean {
        perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1);
        return super.write(frames);
      }
    }
    const clients = Array.from({ length: 5_000 }, () => world.open("run", { sink: new Counted() }));
    count();
    await world.publish("run", ["token"]);
    await waitFor("all have it", () => clients.every((client) => client.writes === 1));
    counting = false;
    expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(500);
    expect(perTurn.size).toBeGreaterThanOrEqual(10);
  });
});

describe("a drain", () => {
  it("lets go of all, each with a time of its own to come back, and of those who come meanwhile last", async () => {
    begin();
    const order: string[] = [];
    const named = (name: string) => {
      const client = new Client();
      const end = client.end.bind(client);
      client.end = (last) => {
        order.push(name);
        end(last);
      };
      return world.open(`run-${name}`, { sink: client });
    };
    const clients = Array.from({ length: 150 }, (_, n) => named(`${n}`));
    const drained = world.table.drain(10, "penstock");
    clients.push(named("late"));
    await drained;
    expect(order).toEqual([...Array.from({ length: 150 }, (_, n) => `${n}`), "late"]);
    expect(clients.every((client) => /^retry: \d+\n$/.test(client.text))).toBe(true);
    expect(new Set(clients.map((client) => client.text)).size).toBeGreaterThan(50);
  });

  it("waits for a full socket, and cuts what has not drained at the deadline", async () => {
    begin();
    const [slow, stuck] = [world.open("run"), world.open("run")];
    for (const client of [slow, stuck]) client.takes = false;
    await world.publish("run", ["one"]);
    await waitFor("both are full", () => slow.writes + stuck.writes === 2);
    await world.publish("run", ["two"]);
    const drained = world.table.drain(1, "penstock");
    slow.drain();
    await waitFor("the one that drained is let go", () => slow.ended);
    expect(stuck.ended).toBe(false);
    await drained;
    expect(slow.text).toMatch(/event: one\n[^\n]*\n\nretry: \d+\n$/);
    expect(stuck.text).toMatch(/event: one\n[^\n]*\n\nevent: gap\ndata: {"reason": "shutdown"[^\n]*\n\nretry: \d+\n$/);
    expect(world.closed).toEqual(["shutdown", "cut"]);
  });

  it("speaks as ZenML's server does where that is asked for, also to a socket that was full", async () => {
    begin();
    const [free, slow] = [world.open("run"), world.open("run")];
    slow.takes = false;
    await world.publish("run", ["one"]);
    await waitFor("both have it", () => slow.writes + free.writes === 2);
    const drained = world.table.drain(5, "zenml");
    await waitFor("the free one is let go", () => free.ended);
    slow.drain();
    await drained;
    for (const { text } of [free, slow])
      expect(text).toMatch(/event: gap\ndata: {"reason": "shutdown"[^\n]*\n\nevent: end\ndata: {}\n\n$/);
  });

  it("of no time cuts at once", async () => {
    begin();
    const client = world.open("run");
    await world.table.drain(0, "penstock");
    expect(client.kinds).toEqual(["gap"]);
    expect(world.table.connections).toBe(0);
  });
});

describe("a fault", () => {
  it("of one sink ends the streams of its run, and no others", async () => {
    begin();
    const broken = new Client();
    broken.write = () => {
      throw new Error("broken sink");
    };
    broken.end = broken.write;
    const [same, other] = [world.open("bad"), world.open("good")];
    world.open("bad", { sink: broken });
    await world.publish("bad", ["token"]);
    await world.publish("good", ["token"]);
    await waitFor("the other run goes on", () => other.kinds.length === 1);
    await waitFor("its neighbour is told", () => same.ended);
    expect(same.text).toMatch(/event: error\ndata: {"reason":"stream_failed"}\n\n$/);
    expect(world.closed).toEqual(["failed", "failed"]);
    expect(world.table.runs).toBe(1);
    expect(world.log.entries.filter(({ level }) => level === "error").map(({ message }) => message)).toEqual([
      "a run failed and was dropped",
      "a stream of a run that failed could not be ended",
    ]);
    const again = world.open("bad");
    await waitFor("the run can be read again", () => again.kinds.length === 1);
  });

  it("of a sink that cannot be let go does not hold up the drain of others", async () => {
    begin();
    const broken = world.open("bad");
    broken.end = () => {
      throw new Error("broken sink");
    };
    const others = Array.from({ length: 3 }, () => world.open("good"));
    await world.table.drain(5, "penstock");
    expect(others.every((client) => client.ended)).toBe(true);
    expect(world.table.connections).toBe(0);
  });
});

describe("rings", () => {
  it("of many runs together stay within their bytes, and nobody misses anything", async () => {
    const ringTotalBytes = 256 * 1024;
    begin({ ringTotalBytes });
    const clients = Array.from({ length: 40 }, (_, run) => world.open(`run-${run}`));
    for (let n = 0; n < 50; n++) {
      for (let run = 0; run < 40; run++) await world.publish(`run-${run}`, [`k${n}`], "x".repeat(200));
      expect(world.table.ringBytes).toBeLessThanOrEqual(ringTotalBytes);
    }
    await waitFor("all have all", () => clients.every((client) => client.kinds.length === 50));
    const expected = Array.from({ length: 50 }, (_, n) => `k${n}`);
    for (const client of clients) expect(client.kinds).toEqual(expected);
    expect(world.table.ringBytes).toBeLessThanOrEqual(ringTotalBytes);
  });
});

describe("a process that has been up for more than 24 days", () => {
  it("coalesces, beats and keeps its streams as on the first", async () => {
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + 25 * 86_400_000);
    begin({ maxAgeMs: 3_600_000, heartbeatMs: 400, coalesceMs: 50 });
    const client = world.open("run");
    for (const kind of ["one", "two", "three"]) {
      await world.publish("run", [kind]);
      await new Promise(setImmediate);
    }
    await waitFor("all events came", () => client.kinds.length === 3);
    await waitFor("two heartbeats came", () => client.text.split(": ping").length === 3);
    expect(client.ended).toBe(false);
  });
});

describe("a table that is closed", () => {
  it("keeps no timer, so that the process can exit", async () => {
    begin();
    const script = path.join(import.meta.dirname, "close-script.ts");
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    const text = child.stdout.setEncoding("utf8").toArray();
    const kill = setTimeout(() => child.kill("SIGKILL"), 20_000);
    const [code] = await once(child, "exit");
    clearTimeout(kill);
    expect((await text).join("")).toBe("closed\n");
    expect(code).toBe(0);
  });
});
