import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkClient } from "./rules.ts";
import { anySetting, type Setting, type Step, steps, World } from "./world.ts";

/** `PENSTOCK_PROPERTY_RUNS=30000` looks longer. */
const RUNS = Number(process.env["PENSTOCK_PROPERTY_RUNS"] ?? 1_000);
/** One and the same in `npm test`, so that a change is judged by what it changes; by chance, and printed, when it looks longer. */
const CHANCE = process.env["PENSTOCK_PROPERTY_RUNS"] === undefined ? { seed: 4_711 } : {};
const TIMEOUT_MS = 20_000 + RUNS * 20;

function play(setting: Setting, actions: readonly Step[], slowConsumer: "replay" | "gap" | "disconnect"): World {
  const world = new World(setting, slowConsumer);
  world.play(actions);
  if (setting.endsAtLast) world.stream.end();
  world.settle();
  for (const client of world.clients) checkClient(client, world.stream);
  return world;
}

describe("for any interleaving of publishes, losses, outages, stalls, reconnects elsewhere and ends", () => {
  for (const slowConsumer of ["replay", "gap", "disconnect"] as const) {
    it(
      `each reader gets every event once or inside a gap, in order, and one end (slowConsumer: ${slowConsumer})`,
      () => {
        fc.assert(
          fc.property(anySetting, steps(), (setting, actions) => {
            play(setting, actions, slowConsumer);
          }),
          { numRuns: RUNS, ...CHANCE },
        );
      },
      TIMEOUT_MS,
    );
  }

  it(
    "no gap is told where nothing was lost and nothing was away",
    () => {
      const harmless = steps(["trim", "delete", "expire", "rollback", "pageFails", "tail", "goAway"]);
      fc.assert(
        fc.property(anySetting, harmless, (setting, actions) => {
          const { clients } = play(setting, actions, "replay");
          for (const client of clients) {
            const gaps = client.seen.filter((seen) => seen.what === "gap" && seen.gap.reason !== "shutdown");
            expect(gaps).toEqual([]);
          }
        }),
        { numRuns: RUNS, ...CHANCE },
      );
    },
    TIMEOUT_MS,
  );
});
