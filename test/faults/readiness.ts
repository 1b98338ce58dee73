import type { Gateway } from "../support/gateway.ts";
import { waitFor } from "../support/wait-for.ts";

/** Waits until a load balancer would see the gateway as ready, or as not ready. */
export async function untilReadiness(gateway: Gateway, status: 200 | 503, limitMs?: number): Promise<void> {
  const url = `http://127.0.0.1:${gateway.adminPort}/readyz`;
  await waitFor(`/readyz answers ${status}`, async () => (await fetch(url)).status === status, limitMs);
}
