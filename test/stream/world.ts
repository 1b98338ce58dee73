/** A world of one stream, two gateways and some clients, and all that can happen in it. */
import fc from "fast-check";
import { expect } from "vitest";
import type { RunSettings } from "../../gateway/stream/run-host.ts";
import { cut, release } from "../../gateway/stream/tending.ts";
import { type ClientOptions, ModelClient } from "./model-client.ts";
import { ModelGateway } from "./model-gateway.ts";
import { ModelStream } from "./model-stream.ts";

const gateway = fc.nat(1);
const client = fc.nat(4);
const index = fc.nat(7);
const behind = fc.integer({ min: 0, max: 20 });
const kinds = ["token", "log"];

/** Weight, name and arguments of each thing that can happen. */
const STEPS = {
  publish: [8, fc.record({ kind: fc.constantFrom(...kinds), times: fc.integer({ min: 1, max: 6 }) })],
  end: [1, fc.record({ marks: fc.boolean() })],
  trim: [1, fc.record({ keep: fc.integer({ min: 0, max: 12 }) })],
  delete: [1, fc.record({ index: fc.nat(30) })],
  expire: [0.5, fc.record({ behind })],
  rollback: [1, fc.record({ count: fc.integer({ min: 1, max: 8 }), behind })],
  read: [5, fc.record({ gateway, proves: fc.boolean() })],
  serve: [6, fc.record({ gateway, times: fc.integer({ min: 1, max: 3 }) })],
  flush: [5, fc.record({ gateway, limit: fc.integer({ min: 1, max: 3 }) })],
  lookUp: [2, fc.record({ gateway, index })],
  page: [4, fc.record({ gateway, index })],
  pageFails: [0.5, fc.record({ gateway, index })],
  tail: [2, fc.record({ gateway, fails: fc.boolean() })],
  retry: [1, fc.record({ gateway })],
  goAway: [0.5, fc.record({ gateway })],
  comeBack: [1, fc.record({ gateway })],
  connect: [4, fc.record({ client, gateway })],
  disconnect: [2, fc.record({ client, loses: fc.nat(4) })],
  drain: [3, fc.record({ client, room: fc.integer({ min: 1, max: 6 }) })],
  letGo: [0.5, fc.record({ client, how: fc.constantFrom("age", "shutdown", "cut" as const) })],
  shrink: [0.5, fc.record({ gateway, bytes: fc.constantFrom(0, 300, 1_000) })],
  forget: [1, fc.record({ gateway })],
  tend: [1, fc.record({ gateway })],
  wait: [3, fc.record({ ms: fc.constantFrom(1, 5, 12, 400, 1_100, 7_000) })],
} as const;
type Name = keyof typeof STEPS;
export type Step = { [K in Name]: (typeof STEPS)[K][1] extends fc.Arbitrary<infer T> ? { readonly do: K } & T : never }[Name];

/** Any number of steps, all of the names but those of `without`. */
export function steps(without: readonly Name[] = []): fc.Arbitrary<Step[]> {
  const names = (Object.keys(STEPS) as Name[]).filter((name) => !without.includes(name));
  const choices = names.map((name) => {
    const [weight, values] = STEPS[name];
    return { weight: weight * 2, arbitrary: (values as fc.Arbitrary<object>).map((value) => ({ do: name, ...value }) as Step) };
  });
  return fc.array(fc.oneof(...choices), { minLength: 5, maxLength: 150, size: "max" });
}

const since = fc.oneof(
  fc.constantFrom("0-0", "999-0", "1000000000-0"),
  fc.integer({ min: 0, max: 60 }).map((ms) => `${1_000_000 + ms}-9`),
);
const anyClient: fc.Arbitrary<ClientOptions> = fc.record({
  kinds: fc.constantFrom([], [], ["token"], ["log"]),
  since: fc.option(since, { freq: 3 }),
  tail: fc.option(fc.constantFrom(0, 1, 3, 20), { freq: 3 }),
});

export const anySetting = fc.record({
  ringEvents: fc.constantFrom(4, 8, 8, 64),
  pageEntries: fc.constantFrom(1, 3, 16),
  tailEntries: fc.constantFrom(1, 5, 5, 30),
  clients: fc.array(anyClient, { minLength: 5, maxLength: 5 }),
  endsAtLast: fc.boolean(),
});
export type Setting = typeof anySetting extends fc.Arbitrary<infer T> ? T : never;

export class World {
  readonly stream = new ModelStream();
  readonly gateways: readonly ModelGateway[];
  readonly clients: readonly ModelClient[];
  readonly #tailEntries: number;

  constructor(setting: Setting, slowConsumer: RunSettings["slowConsumer"]) {
    const { ringEvents, pageEntries } = setting;
    const times = { coalesceMs: 10, heartbeatMs: 1_000_000, stallMs: 1_000_000 };
    const settings = { ringEvents, ringBytes: 100_000, slowConsumer, pageEntries, ...times };
    this.gateways = [new ModelGateway(this.stream, settings), new ModelGateway(this.stream, settings)];
    this.clients = setting.clients.map((options) => new ModelClient(this.stream, options));
    this.#tailEntries = setting.tailEntries;
  }

  play(actions: readonly Step[]): void {
    for (const step of actions) {
      this.stream.step++;
      this.#do(step);
      for (const client of this.clients) client.look();
    }
  }

  /** Lets everything happen that is due, until nothing is left to do. */
  settle(): void {
    for (let round = 0; round < 65; round++) {
      this.stream.step++;
      this.#wait(200);
      for (const client of this.clients) client.connect(this.gateways[0]!);
      for (const client of this.clients) client.drain(Number.POSITIVE_INFINITY);
      for (const gateway of this.gateways) this.#work(gateway, round % 10 === 9);
      for (const client of this.clients) client.look();
    }
    for (const client of this.clients) client.drain(Number.POSITIVE_INFINITY);
    for (const gateway of this.gateways) expect(gateway.isAtRest, "a gateway at rest").toBe(true);
    for (const client of this.clients) expect(client.connected || client.ended, "a client that is followed").toBe(true);
  }

  #work(gateway: ModelGateway, tends: boolean): void {
    gateway.comeBack(this.#tailEntries);
    gateway.read(this.#tailEntries);
    for (let turn = 0; turn < 10; turn++) {
      while (gateway.tailReads.length > 0) gateway.answerTail(false);
      while (gateway.pageReads.length > 0) gateway.answerPage();
      while (gateway.toServe.length > 0) gateway.serveOne();
      gateway.retry();
      gateway.flush(1_000);
    }
    if (tends) gateway.tend();
  }

  #wait(ms: number): void {
    this.stream.now += ms;
    this.stream.clock += ms;
  }

  #do(step: Step): void {
    const { stream } = this;
    const gateway = "gateway" in step ? this.gateways[step.gateway]! : this.gateways[0]!;
    const client = "client" in step ? this.clients[step.client]! : this.clients[0]!;
    switch (step.do) {
      case "publish":
        for (let i = 0; i < step.times; i++) stream.publish(step.kind);
        break;
      case "end":
        stream.end(step.marks);
        break;
      case "trim":
        stream.trim(step.keep);
        break;
      case "delete":
        stream.delete(step.index);
        break;
      case "expire":
        stream.expire(step.behind);
        break;
      case "rollback":
        stream.rollBack(step.count, step.behind);
        break;
      case "read":
        gateway.read(this.#tailEntries, step.proves);
        break;
      case "serve":
        for (let i = 0; i < step.times; i++) gateway.serveOne();
        break;
      case "flush":
        gateway.flush(step.limit);
        break;
      case "lookUp":
        gateway.lookUp(step.index);
        break;
      case "page":
        gateway.answerPage(step.index);
        break;
      case "pageFails":
        gateway.failPage(step.index);
        break;
      case "tail":
        gateway.answerTail(step.fails);
        break;
      case "retry":
        gateway.retry();
        break;
      case "goAway":
        gateway.goAway();
        break;
      case "comeBack":
        gateway.comeBack(this.#tailEntries);
        break;
      case "connect":
        client.connect(gateway);
        break;
      case "disconnect":
        client.disconnect(step.loses);
        break;
      case "drain":
        client.drain(step.room);
        break;
      case "letGo":
        if (client.connected) this.#letGo(client, step.how);
        break;
      case "shrink":
        gateway.run.ring.shrink(step.bytes);
        break;
      case "forget":
        gateway.forget();
        break;
      case "tend":
        gateway.tend();
        break;
      case "wait":
        this.#wait(step.ms);
        break;
    }
  }

  #letGo(client: ModelClient, how: "age" | "shutdown" | "cut"): void {
    if (how === "cut") cut(client.subscriber!, "penstock");
    else release(client.subscriber!, how);
  }
}
