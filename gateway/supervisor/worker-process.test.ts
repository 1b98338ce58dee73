import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { MemoryLog } from "../../test/support/memory-log.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { loadConfig } from "../config/load.ts";
import { VERSION } from "../version.ts";
import { IPC_VERSION } from "./messages.ts";
import { WorkerProcess } from "./worker-process.ts";

const program = join(tmpdir(), `penstock-worker-${process.pid}.mjs`);
afterEach(() => rm(program, { force: true }));

/** A worker whose program says hello with these versions, and writes down what it is sent. */
async function start(version: number, name: string) {
  const hello = JSON.stringify({ type: "hello", version, program: name });
  await writeFile(
    program,
    `process.send(${hello}); process.on("message", ({ type }) => process.send({ type: "failed", error: { name: "Error", code: null, message: "sent " + type } }));`,
  );
  const log = new MemoryLog();
  const { config } = loadConfig({ flags: new Map(), env: {}, file: null });
  let ended = false;
  const events = {
    exited() {
      ended = true;
    },
    claimed() {},
    polled() {},
  };
  const worker = new WorkerProcess({ config, index: 0, workers: 2 }, events, log, program);
  return { worker, log, hasEnded: () => ended };
}

describe("a worker's first word", () => {
  it("is which program it is, and the right one is started", async () => {
    const { worker, hasEnded } = await start(IPC_VERSION, VERSION);
    await expect(worker.started).rejects.toThrow("sent start");
    await waitFor("its end", hasEnded);
  });

  it.each([
    ["messages", IPC_VERSION + 1, VERSION],
    ["program", IPC_VERSION, "0.0.0-other"],
  ])("ends it where it is of other %s than this process, which says what to do", async (_, version, name) => {
    const { worker, log, hasEnded } = await start(version, name);
    await expect(worker.started).rejects.toThrow("a worker of another version");
    await waitFor("its end", hasEnded);
    expect(log.entries.map(({ message }) => message)).toEqual([
      "the program on disk is another one than this process; restart the gateway",
    ]);
  });
});
