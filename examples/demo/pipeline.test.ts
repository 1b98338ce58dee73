import { describe, expect, it } from "vitest";
import { type DemoEvent, generation, KINDS, pipeline, STEPS, tokensOf } from "./pipeline.ts";
import { TALKS } from "./texts.ts";

function eventsOf(round: number): DemoEvent[] {
  return [...generation(TALKS[round - 1]!, round)].map((timed) => timed.event);
}

describe("the demo's pipeline", () => {
  it("cuts each text into tokens that join to the same text", () => {
    for (const { answer, followUp } of TALKS) {
      expect(tokensOf(answer).join("")).toBe(answer);
      expect(tokensOf(followUp).join("")).toBe(followUp);
    }
  });

  it.each(TALKS.map((talk, index) => [talk.question, index + 1]))(
    "numbers the tokens of both generations without a hole: %s",
    (_, round) => {
      const events = eventsOf(round as number);
      for (const id of [`answer-${round}`, `follow-up-${round}`]) {
        const indexes = events
          .filter((event) => event.kind === "token" && event.correlation_id === id)
          .map((event) => event.index);
        expect(indexes).toEqual(indexes.map((_, position) => position));
        const usage = events.find((event) => event.kind === "usage" && event.correlation_id === id);
        expect(usage?.payload).toEqual({ tokens: indexes.length });
      }
    },
  );

  it("runs two generations at once", () => {
    const tokens = eventsOf(1).filter((event) => event.kind === "token");
    const firstOfFollowUp = tokens.findIndex((event) => event.step_name === "suggest");
    const lastOfAnswer = tokens.findLastIndex((event) => event.step_name === "generate");
    expect(firstOfFollowUp).toBeGreaterThan(0);
    expect(firstOfFollowUp).toBeLessThan(lastOfAnswer);
  });

  it("goes on with the next question, for ever, with every kind and step that the page offers as a filter", () => {
    const kinds = new Set<string>();
    const steps = new Set<string>();
    for (const { event, afterMs } of pipeline()) {
      kinds.add(event.kind);
      steps.add(event.step_name);
      expect(afterMs).toBeGreaterThan(0);
      if (event.correlation_id === `answer-${TALKS.length + 1}`) break;
    }
    expect([...kinds].sort()).toEqual([...KINDS].sort());
    expect([...steps].sort()).toEqual([...STEPS].sort());
  });
});
