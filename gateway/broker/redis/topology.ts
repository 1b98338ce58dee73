/** Which nodes are masters, and of which slots: asked, never set. */
import { lookup } from "node:dns/promises";
import type { CommandClient } from "./command-client.ts";
import { Connection, ConnectionError, describeError } from "./connection.ts";
import { type Reply, ReplyError } from "./resp.ts";
import { type Address, type Credentials, describeAddress, type RedisTarget } from "./target.ts";

export interface Layout {
  readonly kind: "standalone" | "sentinel" | "cluster";
  readonly masters: readonly Address[];
  /** Index of the master of each slot, -1 where there is none; null when one master has all keys. */
  readonly slots: Int16Array | null;
}

export const SLOTS = 16_384;

export class Topology {
  readonly #target: RedisTarget;
  readonly #timeoutMs: number;
  /** Asked once; a standalone server does not become a cluster. */
  #isCluster: boolean | null = null;

  constructor(target: RedisTarget, timeoutMs: number) {
    this.#target = target;
    this.#timeoutMs = timeoutMs;
    if (target.sentinel !== null) this.#isCluster = false;
  }

  get isSentinel(): boolean {
    return this.#target.sentinel !== null;
  }

  /** Asks the nodes known so far, then those of the settings, by name anew. Throws ConnectionError with one line when none can tell. */
  async discover(known: readonly CommandClient[]): Promise<Layout> {
    if (this.#target.sentinel !== null) return this.#askSentinels();
    if (this.#isCluster === false) return { kind: "standalone", masters: [await this.#standalone()], slots: null };
    const failures: string[] = [];
    for (const client of shuffle(known.filter((client) => client.isConnected))) {
      const reply = await client.run([["CLUSTER", "SLOTS"]]).then(
        ([slots]) => slots!,
        (error: Error) => error,
      );
      const layout = Array.isArray(reply) ? readSlots(reply, client.address) : null;
      if (layout !== null) return layout;
      failures.push(reply instanceof Error ? reply.message : `${describeAddress(client.address)} knows no slots`);
    }
    for (const seed of await this.#seeds()) {
      try {
        const layout = await this.#ask(seed, this.#target.credentials, (connection) => this.#askSeed(connection, seed));
        if (layout !== null) return layout;
        failures.push(`${describeAddress(seed)}: the cluster has no slots yet`);
      } catch (error) {
        failures.push(describeError(error, seed));
      }
    }
    throw new ConnectionError(failures.at(-1) ?? "no node of Redis is known");
  }

  /** The seed; of several the first that is a master, else the first that answers. */
  async #standalone(): Promise<Address> {
    const { seeds, credentials } = this.#target;
    if (seeds.length === 1) return seeds[0]!;
    let answering: Address | null = null;
    for (const seed of seeds) {
      const role = await this.#ask(seed, credentials, readRole).catch(() => null);
      if (role === "master") return seed;
      if (role !== null) answering ??= seed;
    }
    return answering ?? seeds[0]!;
  }

  /** The addresses of the settings, one for each that a name stands for. */
  async #seeds(): Promise<Address[]> {
    const seeds: Address[] = [];
    for (const seed of this.#target.seeds) {
      const found = seed.path === null && this.#isCluster ? await lookup(seed.host, { all: true }).catch(() => []) : [];
      // With TLS the name itself must be connected to: the certificate bears it.
      if (found.length < 2 || this.#target.tls !== null) seeds.push(seed);
      else for (const { address } of found) seeds.push({ ...seed, host: address });
    }
    return shuffle(seeds);
  }

  async #askSeed(connection: Connection, seed: Address): Promise<Layout | null> {
    this.#isCluster ??= await readIsCluster(connection);
    if (!this.#isCluster) return { kind: "standalone", masters: [await this.#standalone()], slots: null };
    const slots = await connection.call("CLUSTER", "SLOTS");
    return Array.isArray(slots) ? readSlots(slots, seed) : null;
  }

  async #askSentinels(): Promise<Layout> {
    const { masterName, addresses } = this.#target.sentinel!;
    const failures: string[] = [];
    for (const sentinel of shuffle(addresses)) {
      const ask = async (connection: Connection): Promise<Reply> =>
        connection.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName);
      try {
        const nobody = { username: null, password: null };
        const reply = await this.#ask(sentinel, nobody, ask).catch((error: unknown) => {
          // Only a Sentinel that wants a password gets one: most have none, and refuse whoever brings one.
          if (error instanceof ReplyError && error.kind === "NOAUTH") return this.#ask(sentinel, this.#target.credentials, ask);
          throw error;
        });
        if (Array.isArray(reply) && reply.length >= 2) {
          const master = { host: String(reply[0]), port: Number(reply[1]), path: null, database: this.#target.database };
          return { kind: "sentinel", masters: [master], slots: null };
        }
        failures.push(`${describeAddress(sentinel)}: this Sentinel knows no master ${masterName}`);
      } catch (error) {
        failures.push(describeError(error, sentinel));
      }
    }
    throw new ConnectionError(failures.at(-1) ?? "no Sentinel is given");
  }

  async #ask<Answer>(
    address: Address,
    credentials: Credentials,
    ask: (connection: Connection) => Promise<Answer>,
  ): Promise<Answer> {
    const options = { address, credentials, tls: this.#target.tls, timeoutMs: this.#timeoutMs, name: "penstock-topology" };
    const connection = new Connection(options, () => {});
    await connection.open();
    const deadline = setTimeout(() => connection.close(), this.#timeoutMs);
    try {
      return await ask(connection);
    } finally {
      clearTimeout(deadline);
      connection.close();
    }
  }
}

/** `INFO cluster`, and where that is refused `CLUSTER INFO`. */
async function readIsCluster(connection: Connection): Promise<boolean> {
  try {
    const info = /^cluster_enabled:([01])/m.exec(String(await connection.call("INFO", "cluster")));
    if (info !== null) return info[1] === "1";
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    if (error.kind === "NOAUTH") throw error;
  }
  const reply = await connection.call("CLUSTER", "INFO").catch((error: unknown) => {
    if (error instanceof ReplyError) return "";
    throw error;
  });
  return String(reply).includes("cluster_state:");
}

/** `master`, `slave`, or an empty text where INFO is refused. */
async function readRole(connection: Connection): Promise<string> {
  const info = await connection.call("INFO", "replication").catch((error: unknown) => {
    if (error instanceof ReplyError) return "";
    throw error;
  });
  return /^role:(\w+)/m.exec(String(info))?.[1] ?? "";
}

/** Reads CLUSTER SLOTS; null when it names no slot. A node that does not know its own address is the one that was asked. */
export function readSlots(reply: readonly Reply[], asked: Address): Layout | null {
  const masters: Address[] = [];
  const indexes = new Map<string, number>();
  const slots = new Int16Array(SLOTS).fill(-1);
  for (const range of reply) {
    const [from, to, master] = range as [number, number, Reply[]];
    const host = master?.[0] === null ? "" : String(master?.[0] ?? "");
    const address = {
      host: host === "" || host === "?" ? asked.host : host,
      port: Number(master?.[1]),
      path: null,
      database: 0,
    };
    const name = describeAddress(address);
    let index = indexes.get(name);
    if (index === undefined) {
      index = masters.push(address) - 1;
      indexes.set(name, index);
    }
    slots.fill(index, Number(from), Number(to) + 1);
  }
  return masters.length === 0 ? null : { kind: "cluster", masters, slots };
}

function shuffle<Item>(items: readonly Item[]): Item[] {
  const shuffled = [...items];
  for (let at = shuffled.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1));
    [shuffled[at], shuffled[other]] = [shuffled[other]!, shuffled[at]!];
  }
  return shuffled;
}
