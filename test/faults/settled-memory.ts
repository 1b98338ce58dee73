/** Memory of a gateway when all its garbage is gone: what lives is what something costs. Needs `INSPECTED` in its environment. */
import { setTimeout as pause } from "node:timers/promises";
import type { Gateway } from "../support/gateway.ts";
import { memoryBytes } from "./process-usage.ts";

/** Makes the process answer the inspector, on a free port of the loopback. */
export const INSPECTED = { NODE_OPTIONS: "--inspect=127.0.0.1:0" };

const ROUNDS = 5;
/** For freed pages to go back to the kernel: V8 and the allocator do it a little later. */
const SETTLE_MS = 300;

/** The least of several looks, each behind a full collection, in bytes. */
export async function settledMemory(gateway: Gateway): Promise<number> {
  const inspector = await connectInspector(gateway);
  try {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS; round++) {
      await inspector.collectGarbage();
      await pause(SETTLE_MS);
      least = Math.min(least, await memoryBytes(gateway.pid));
    }
    return least;
  } finally {
    inspector.close();
  }
}

interface Inspector {
  collectGarbage(): Promise<void>;
  close(): void;
}

async function connectInspector(gateway: Gateway): Promise<Inspector> {
  const address = /ws:\/\/127\.0\.0\.1:\d+\/[\w-]+/.exec(gateway.logs())?.[0];
  if (address === undefined) throw new Error("the gateway was not started with INSPECTED");
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", reject, { once: true });
  });
  let sent = 0;
  return {
    collectGarbage: () =>
      new Promise((resolve) => {
        const id = ++sent;
        const take = (message: MessageEvent): void => {
          if ((JSON.parse(String(message.data)) as { id?: number }).id !== id) return;
          socket.removeEventListener("message", take);
          resolve();
        };
        socket.addEventListener("message", take);
        socket.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }));
      }),
    close: () => socket.close(),
  };
}
