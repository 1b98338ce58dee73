/**
 * `npm run demo`: a gateway with the memory broker, a run that never ends, and a page that watches it.
 *
 *     npm run demo -- --port 4000 --speed 3      the page's port (default: any free one); how fast (default: 1, as a person reads)
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startGateway } from "./gateway.ts";
import { startPageServer } from "./page-server.ts";
import { KINDS, pipeline, STEPS } from "./pipeline.ts";
import { publish } from "./publisher.ts";

const RUN_ID = "demo";
const { port, speed } = readFlags();
const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stopping.abort());

const page = await startPageServer(port);
const address = `http://127.0.0.1:${page.port}`;
try {
  const gateway = await startGateway([address, `http://localhost:${page.port}`]);
  void gateway.ended.then(() => {
    if (stopping.signal.aborted) return;
    console.error("The gateway has ended by itself (see above).");
    process.exitCode = 1;
    stopping.abort();
  });
  page.ready({ gateway: gateway.url, runId: RUN_ID, kinds: KINDS, steps: STEPS });
  console.log(`
  Page   ${address}
  curl   curl -N ${gateway.url}/api/v1/runs/${RUN_ID}/events/stream

  Open the page twice, cut its connection, watch it resume. Ctrl-C ends the demo.
`);
  try {
    await publishAll(gateway.url);
  } finally {
    await gateway.stop();
  }
} finally {
  page.close();
}

async function publishAll(gateway: string): Promise<void> {
  const { signal } = stopping;
  try {
    for (const { afterMs, event } of pipeline()) {
      await delay(afterMs / speed, undefined, { signal });
      await publish(gateway, RUN_ID, event, signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function readFlags(): { port: number; speed: number } {
  const options = { port: { type: "string", default: "0" }, speed: { type: "string", default: "1" } } as const;
  const { values } = parseArgs({ options });
  const flags = { port: Number(values.port), speed: Number(values.speed) };
  if (!Number.isInteger(flags.port) || flags.port < 0 || flags.port > 65_535)
    throw new Error("--port is a number from 0 to 65535");
  if (!(flags.speed > 0)) throw new Error("--speed is a number above 0");
  return flags;
}
