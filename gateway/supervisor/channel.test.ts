import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";
import { endWithUs } from "../../test/support/children.ts";
import { Channel } from "./channel.ts";

let child: ChildProcess;
afterEach(() => child.kill("SIGKILL"));

/** Says hello, then answers each message with its number. */
function start(): ChildProcess {
  const script = 'process.send("hello"); process.on("message", ({ n }) => process.send({ n }))';
  child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  endWithUs(child);
  return child;
}

it("messages come, in order", async () => {
  const received: unknown[] = [];
  const all = Promise.withResolvers<void>();
  const channel = new Channel<{ n: number }, unknown>(start(), (message) => {
    received.push(message);
    if (received.length === 4) all.resolve();
  });
  for (const n of [1, 2, 3]) expect(channel.send({ n })).toBe(true);
  await all.promise;
  expect(received).toEqual(["hello", { n: 1 }, { n: 2 }, { n: 3 }]);
});

it("a side that does not read costs the other no memory without end, and goes on when it reads again", {
  timeout: 20_000,
}, async () => {
  let last = 0;
  const caughtUp = Promise.withResolvers<void>();
  let sent = 0;
  const channel = new Channel<{ n: number; filling: string }, { n: number } | "hello">(start(), (message) => {
    if (message === "hello") return;
    last = message.n;
    if (last === sent) caughtUp.resolve();
  });
  await once(child, "message");
  child.kill("SIGSTOP");
  const filling = "x".repeat(1_000);
  while (channel.send({ n: sent + 1, filling })) {
    sent++;
    expect(sent).toBeLessThan(100_000);
    if (sent % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(sent).toBeGreaterThan(1_000);
  child.kill("SIGCONT");
  await caughtUp.promise;
  expect(channel.send({ n: ++sent, filling })).toBe(true);
});

it("a side that is gone takes nothing, and that is no error", async () => {
  const channel = new Channel<{ n: number }, unknown>(start(), () => {});
  await once(child, "message");
  child.kill("SIGKILL");
  await once(child, "exit");
  while (child.connected) await new Promise((resolve) => setImmediate(resolve));
  expect(channel.send({ n: 1 })).toBe(false);
});
