import { describe } from "vitest";
import { describeChaos } from "../faults/chaos.ts";

/** `PENSTOCK_SEED=N` repeats the order of faults that a run named. */
const seed = Number(process.env["PENSTOCK_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

describe.each([true, false])("tracking %s", (tracking) => {
  describeChaos({ seconds: 180, runs: 6, seed, tracking });
});
