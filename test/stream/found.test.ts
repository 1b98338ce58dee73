/** Worlds in which a fault was found by chance; each stays, so that it is not found again. */
import { expect, it } from "vitest";
import { checkClient } from "./rules.ts";
import { type Setting, type Step, World } from "./world.ts";

interface Found {
  readonly fault: string;
  readonly slowConsumer: "replay" | "gap" | "disconnect";
  readonly setting: Setting;
  readonly steps: readonly Step[];
}

const FOUND: readonly Found[] = [
  {
    fault: "an event of a new branch is passed over by a reader that a page left on a lost one",
    slowConsumer: "gap",
    setting: {
      ringEvents: 4,
      pageEntries: 3,
      tailEntries: 1,
      clients: [
        { kinds: [], since: null, tail: null },
        { kinds: [], since: "1000048-9", tail: null },
        { kinds: [], since: null, tail: null },
        { kinds: [], since: null, tail: null },
        { kinds: [], since: null, tail: null },
      ],
      endsAtLast: false,
    },
    steps: [
      { do: "connect", client: 2, gateway: 1 },
      { do: "publish", kind: "token", times: 2 },
      { do: "read", gateway: 1, proves: false },
      { do: "expire", behind: 0 },
      { do: "end", marks: false },
      { do: "end", marks: false },
      { do: "wait", ms: 7000 },
      { do: "publish", kind: "token", times: 1 },
      { do: "serve", gateway: 1, times: 1 },
      { do: "publish", kind: "token", times: 1 },
      { do: "publish", kind: "token", times: 6 },
      { do: "publish", kind: "token", times: 1 },
      { do: "page", gateway: 1, index: 0 },
      { do: "serve", gateway: 1, times: 1 },
      { do: "rollback", count: 8, behind: 7 },
      { do: "page", gateway: 1, index: 0 },
      { do: "wait", ms: 1 },
      { do: "rollback", count: 2, behind: 4 },
      { do: "read", gateway: 0, proves: false },
      { do: "disconnect", client: 0, loses: 0 },
      { do: "serve", gateway: 0, times: 1 },
      { do: "publish", kind: "token", times: 2 },
      { do: "tail", gateway: 0, fails: false },
    ],
  },
];

it.each(FOUND)("$fault: no more", ({ slowConsumer, setting, steps }) => {
  const world = new World(setting, slowConsumer);
  world.play(steps);
  if (setting.endsAtLast) world.stream.end();
  world.settle();
  for (const client of world.clients) expect(() => checkClient(client, world.stream)).not.toThrow();
});
