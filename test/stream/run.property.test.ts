import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import { ModelClient, ModelGateway, ModelStream, type Seen } from "./model.ts";

const KINDS = ["token", "log"];
const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("publish" as const),
      kind: fc.constantFrom(...KINDS),
      times: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("trim" as const), keep: fc.integer({ min: 0, max: 12 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("rollback" as const),
      count: fc.integer({ min: 1, max: 8 }),
      behind: fc.integer({ min: 0, max: 20 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("read" as const), gateway: fc.nat(1) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("serve" as const), gateway: fc.nat(1) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("flush" as const), gateway: fc.nat(1), limit: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("page" as const), gateway: fc.nat(1), fails: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("connect" as const), client: fc.nat(4), gateway: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("disconnect" as const), client: fc.nat(4) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("drain" as const), client: fc.nat(4), room: fc.integer({ min: 1, max: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("forget" as const), gateway: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("tend" as const), gateway: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 5, 12, 400, 1100, 7000) }) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

interface World {
  readonly stream: ModelStream;
  readonly gateways: ModelGateway[];
  readonly clients: ModelClient[];
}

function play(actions: readonly Action[], ends: boolean, slowConsumer: "replay" | "gap"): World {
  const stream = new ModelStream();
  const settings = {
    ringEvents: 8,
    ringBytes: 100_000,
    coalesceMs: 10,
    slowConsumer,
    pageEntries: 16,
    heartbeatMs: 1_000_000,
    stallMs: 1_000_000,
  };
  const gateways = [new ModelGateway(stream, settings), new ModelGateway(stream, settings)];
  const clients = [[], [], ["token"], ["log"], ["token"]].map((kinds) => new ModelClient(stream, kinds));
  for (const step of actions) {
    switch (step.do) {
      case "publish":
        for (let i = 0; i < step.times; i++) stream.publish(step.kind);
        break;
      case "trim":
        stream.trim(step.keep);
        break;
      case "rollback":
        stream.rollBack(step.count, step.behind);
        break;
      case "read":
        gateways[step.gateway]!.read(5);
        break;
      case "serve":
        gateways[step.gateway]!.serveOne();
        break;
      case "flush":
        gateways[step.gateway]!.flush(step.limit);
        break;
      case "page":
        if (step.fails) gateways[step.gateway]!.failPage();
        else gateways[step.gateway]!.answerPage();
        break;
      case "connect":
        clients[step.client]!.connect(gateways[step.gateway]!);
        break;
      case "disconnect":
        clients[step.client]!.disconnect();
        break;
      case "drain":
        clients[step.client]!.drain(step.room);
        break;
      case "forget":
        gateways[step.gateway]!.forget();
        break;
      case "tend":
        gateways[step.gateway]!.tend();
        break;
      case "wait":
        pass(stream, step.ms);
        break;
    }
  }
  if (ends) stream.end();
  settle({ stream, gateways, clients });
  return { stream, gateways, clients };
}

function pass(stream: ModelStream, ms: number): void {
  stream.now += ms;
  stream.clock = Math.max(stream.clock + ms, stream.clock);
}

/** Lets everything happen that is due, until nothing is left to do. */
function settle({ stream, gateways, clients }: World): void {
  for (const client of clients) if (!client.connected) client.connect(gateways[0]!);
  for (let round = 0; round < 65; round++) {
    pass(stream, 200);
    for (const client of clients) client.drain(Number.POSITIVE_INFINITY);
    for (const gateway of gateways) {
      gateway.read(5);
      while (gateway.pageReads.length > 0) gateway.answerPage();
      while (gateway.toServe.length > 0) gateway.serveOne();
      for (const run of gateway.retries.splice(0)) run.retryPages();
      gateway.flush(1000);
      if (round % 10 === 9) gateway.tend();
    }
  }
}

/** What nobody may be able to say of us: each rule of the promise, for one client. */
function check(client: ModelClient, world: World, ends: boolean): void {
  const { stream } = world;
  const wanted = (kind: string) => client.kinds.length === 0 || client.kinds.includes(kind);
  let last: EventId = "0-0";
  const got = new Set<number>();
  let rolledBack = false;
  for (const seen of client.seen) {
    if (seen.what === "event") {
      expect(compareEventIds(seen.id, last), `id ${seen.id} after ${last}`).toBeGreaterThan(0);
      if (!rolledBack) expect(got.has(seen.n), `event ${seen.n} twice`).toBe(false);
      got.add(seen.n);
      last = seen.id;
    } else if (seen.what === "cursor") {
      expect(compareEventIds(seen.id, last), `cursor ${seen.id} after ${last}`).toBeGreaterThanOrEqual(0);
      last = seen.id;
    } else if (seen.what === "gap") {
      if (seen.gap.reason === "rollback") {
        expect(stream.rollbacks).toBeGreaterThan(0);
        last = "0-0";
        rolledBack = true;
      } else if (seen.gap.reason === "retention") {
        expect(stream.everTrimmed.size > 0 || stream.rollbacks > 0).toBe(true);
        expect(seen.fromGone || seen.gap.missed !== 0, "a retention gap although nothing was lost").toBe(true);
      }
    }
  }
  // A reader without a position begins at the oldest kept entry, so only what was kept at its last fresh start counts.
  const since = client.seen.slice(client.seen.findLastIndex((seen) => seen.what === "open" && seen.position === null));
  const first = since.find(
    (seen) => seen.what === "event" || seen.what === "cursor" || (seen.what === "gap" && seen.gap.reason !== "outage"),
  ) as Exclude<Seen, { what: "end" | "open" }> | undefined;
  for (const event of stream.log) {
    if (event.n < 0 || !wanted(event.kind) || got.has(event.n)) continue;
    if (coveredByGap(event.id, event.n, since, stream)) continue;
    const begin = first === undefined ? null : first.what === "gap" ? first.gap.from : first.id;
    const beforeStart = first === undefined || (begin !== null && compareEventIds(event.id, begin) <= 0);
    if (beforeStart && stream.everTrimmed.has(event.n)) continue;
    expect.fail(`event ${event.n} (${event.id}) was neither delivered nor inside a gap`);
  }
  const ended = client.seen.filter((seen) => seen.what === "end").length;
  expect(ended, "ends seen").toBe(ends ? 1 : 0);
}

function coveredByGap(id: EventId, n: number, seen: readonly Seen[], stream: ModelStream): boolean {
  return seen.some((item) => {
    if (item.what !== "gap" || item.gap.reason === "outage") return false;
    const { reason, from, to } = item.gap;
    if (to !== null && compareEventIds(id, to) >= 0) return false;
    if (to === null && n >= item.published) return false;
    // A position of a lost branch says nothing of where the present one stands, so the gap spans all that is before its end.
    const lostBranch = from !== null && !stream.log.some((event) => event.id === from);
    return reason === "rollback" || lostBranch || from === null || compareEventIds(id, from) > 0;
  });
}

const RUNS = Number(process.env["PENSTOCK_PROPERTY_RUNS"] ?? 1_500);

describe("for any interleaving of publishes, trims, rollbacks, stalls, reconnects elsewhere and an end", () => {
  for (const slowConsumer of ["replay", "gap"] as const) {
    it(`each reader gets every event once or inside a gap, in order, and one end (slowConsumer: ${slowConsumer})`, () => {
      fc.assert(
        fc.property(fc.array(action, { minLength: 5, maxLength: 120, size: "max" }), fc.boolean(), (actions, ends) => {
          const world = play(actions, ends, slowConsumer);
          for (const client of world.clients) check(client, world, ends);
        }),
        { numRuns: RUNS },
      );
    });
  }

  it("no gap is told where nothing was trimmed, rolled back or away", () => {
    const harmless = fc.array(
      action.filter((step) => step.do !== "trim" && step.do !== "rollback" && !(step.do === "page" && step.fails)),
      { minLength: 5, maxLength: 120, size: "max" },
    );
    fc.assert(
      fc.property(harmless, fc.boolean(), (actions, ends) => {
        const world = play(actions, ends, "replay");
        for (const client of world.clients) {
          check(client, world, ends);
          expect(client.seen.filter((seen) => seen.what === "gap")).toEqual([]);
        }
      }),
      { numRuns: RUNS },
    );
  });
});
