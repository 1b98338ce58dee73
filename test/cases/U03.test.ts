/** U03: watchers that do not read cost little, are closed with a reason, and harm nobody. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, casePieces, type Stage, startStage } from "../support/cases.ts";
import { RawConnection } from "../support/raw-http.ts";
import { waitFor } from "../support/wait-for.ts";

/** The case's batch: 8 events of 60,000 letters, about 480 KB. */
const BATCH = JSON.stringify({
  events: Array.from({ length: 8 }, (_, index) => ({
    pipeline_run_id: CASE_RUN,
    kind: "blob",
    step_name: "train",
    correlation_id: "c1",
    index,
    payload: { text: "x".repeat(60_000) },
  })),
});
const BATCHES = 200;
const STALLED = 'penstock_connections_closed_total{reason="stalled"}';
const MIB = 1024 * 1024;
const WATCHERS = 200;
/** What one stalled watcher may cost in the process; over 200 the noise of the heap does not count. */
const LIMIT_A_WATCHER = 0.4 * MIB;
/** Longer than 100 MB take, so that the watchers stall through all of them. */
const STALL_SECONDS = 15;

describe("U03: watchers that do not read", () => {
  let stage: Stage;
  let reading: Counter;
  let published = 0;
  let plateau: number;

  beforeAll(async () => {
    stage = await startStage("memory", {
      flags: ["--max-subscribers-per-stream", "300"],
      config: { streaming: { stallSeconds: STALL_SECONDS }, memory: { totalBytes: "64Mi" } },
    });
    reading = await Counter.open(stage.gateway.port);
    // The first 100 MB fill the broker and let the heap find its size.
    plateau = await publishAll();
  }, 120_000);
  afterAll(async () => {
    reading?.close();
    await stage?.stop();
  });

  it("200 stalled: the reading one gets everything, memory stays, the stalled are closed and counted", {
    timeout: 120_000,
  }, async () => {
    const watchers = await Promise.all(Array.from({ length: WATCHERS }, () => openStalled(stage.gateway.port)));
    await stage.gateway.waitForMetric("penstock_connections", (value) => value === WATCHERS + 1);
    const peak = await publishAll();
    expect(peak - plateau).toBeLessThan(WATCHERS * LIMIT_A_WATCHER);

    await stage.gateway.waitForMetric(STALLED, (value) => value === WATCHERS, 60_000);
    await stage.gateway.waitForMetric("penstock_connections", (value) => value === 1);
    for (const watcher of watchers) watcher.close();
    // Their slots are free, and their memory comes back as publishes make the heap look for it.
    expect((await stage.gateway.stream(CASE_RUN)).status).toBe(200);
    await waitFor("memory within 10 % of before", async () => (await publishAll(BATCHES / 10)) < plateau * 1.1, 40_000);
  });

  /** Publishes the case's 100 MB, each batch when the reading one has the last. Gives the most memory that the process took. */
  async function publishAll(batches = BATCHES): Promise<number> {
    let peak = 0;
    for (let n = 0; n < batches; n++) {
      expect((await stage.gateway.publish(CASE_RUN, BATCH)).status).toBe(200);
      published += 8;
      // The case says 1 s; the limit is for a machine that does other things besides.
      await waitFor(`event ${published} at the reading one`, () => reading.count >= published, 5_000);
      peak = Math.max(peak, residentBytes(stage.gateway.pid));
    }
    expect(reading.count).toBe(published);
    expect(reading.controlFrames).toBe(0);
    return peak;
  }
});

/** Counts events without keeping 100 MB of them. */
class Counter {
  count = 0;
  controlFrames = 0;
  readonly #connection: RawConnection;
  #rest = "";

  private constructor(connection: RawConnection) {
    this.#connection = connection;
  }

  static async open(port: number): Promise<Counter> {
    const connection = await RawConnection.open(port);
    const counter = new Counter(connection);
    connection.socket.removeAllListeners("data");
    connection.socket.on("data", (bytes: Buffer) => counter.#take(bytes.toString("latin1")));
    await connection.send(casePieces("U03/open.http"));
    return counter;
  }

  close(): void {
    this.#connection.close();
  }

  #take(text: string): void {
    const all = this.#rest + text;
    const cut = all.lastIndexOf("\n") + 1;
    this.#rest = all.slice(cut).slice(-64);
    const lines = all.slice(0, cut);
    this.count += lines.split("event: blob\n").length - 1;
    this.controlFrames += (lines.match(/event: (gap|end|error)\n/g) ?? []).length;
  }
}

async function openStalled(port: number): Promise<RawConnection> {
  const connection = await RawConnection.open(port);
  connection.socket.pause();
  await connection.send(casePieces("U03/open.http"));
  return connection;
}

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}
