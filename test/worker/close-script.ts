/** Opens streams in all states, closes the table, and must come to its end by itself. */
import { TableWorld } from "./table-world.ts";

const world = new TableWorld({ coalesceMs: 5_000 });
await world.publish("run", ["one"]);
const clients = Array.from({ length: 10 }, (_, n) => world.open(`run-${n % 3}`));
clients.push(world.open("run"));
// The second event waits to be coalesced, so a timer is set.
for (const kind of ["two", "three"]) {
  await world.publish("run", [kind]);
  await new Promise(setImmediate);
}
clients[0]?.subscription.closed();
await world.broker.end("run-1");
await world.close();
process.stdout.write("closed\n");
