import fc from "fast-check";
import { expect, it } from "vitest";
import type { Subscriber } from "./subscriber.ts";
import { SubscriberList } from "./subscriber-list.ts";

it("a pass comes by everybody who is there all the while, once, whoever goes or comes meanwhile", () => {
  const steps = fc.array(fc.oneof(fc.constant("next"), fc.constant("add"), fc.nat(20)), { maxLength: 60 });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 12 }), steps, (count, actions) => {
      const list = new SubscriberList();
      const make = () => ({ index: -1 }) as Subscriber;
      const first = Array.from({ length: count }, make);
      for (const subscriber of first) list.add(subscriber);
      const gone = new Set<Subscriber>();
      const passed: Subscriber[] = [];
      const take = () => {
        const next = list.next();
        if (next !== null) passed.push(next);
        return next !== null;
      };
      list.startPass();
      for (const action of actions) {
        if (action === "add") list.add(make());
        else if (action !== "next") {
          const victim = list.all()[(action as number) % Math.max(1, list.size)];
          if (victim !== undefined) {
            list.remove(victim);
            gone.add(victim);
          }
        } else if (list.isPassing && !take()) break;
      }
      while (list.isPassing) take();
      expect(new Set(passed).size).toBe(passed.length);
      for (const subscriber of first) if (!gone.has(subscriber)) expect(passed).toContain(subscriber);
      for (const [index, subscriber] of list.all().entries()) expect(subscriber.index).toBe(index);
    }),
  );
});
