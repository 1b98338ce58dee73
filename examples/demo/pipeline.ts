/** A run that looks like an LLM pipeline: retrieve, tools, generate (and suggest beside it), evaluate; then the next question, without end. */
import { randomUUID } from "node:crypto";
import { TALKS, type Talk } from "./texts.ts";

export const KINDS = ["step", "progress", "document", "tool_call", "tool_result", "token", "usage", "score"] as const;
export const STEPS = ["retrieve", "tools", "generate", "suggest", "evaluate"] as const;

export interface DemoEvent {
  readonly step_run_id: string;
  readonly step_name: (typeof STEPS)[number];
  readonly kind: (typeof KINDS)[number];
  readonly correlation_id: string;
  readonly index: number | null;
  readonly payload: object;
}

/** An event, and how long after the one before it comes, in milliseconds. */
export interface Timed {
  readonly afterMs: number;
  readonly event: DemoEvent;
}

/** All rounds, one after another, for ever. The correlation id of round n's answer is `answer-n`, that of its proposal `follow-up-n`. */
export function* pipeline(): Generator<Timed, never> {
  for (let round = 1; ; round++) yield* generation(TALKS[(round - 1) % TALKS.length]!, round);
}

/** One question from its documents to the judgement of its answer. */
export function* generation(talk: Talk, round: number): Generator<Timed> {
  const answerId = `answer-${round}`;
  const retrieve = stepOf("retrieve", answerId);
  yield retrieve(600, "step", { status: "started", question: talk.question });
  for (const [position, title] of talk.documents.entries()) {
    yield retrieve(450, "progress", { done: position + 1, total: talk.documents.length });
    yield retrieve(150, "document", { title, score: 0.93 - position * 0.11 });
  }
  yield retrieve(200, "step", { status: "finished" });

  const tools = stepOf("tools", answerId);
  yield tools(300, "step", { status: "started" });
  yield tools(400, "tool_call", { name: talk.tool.name, arguments: talk.tool.arguments });
  yield tools(900, "tool_result", { name: talk.tool.name, result: talk.tool.result });
  yield tools(150, "step", { status: "finished" });

  yield* tokens(talk, answerId, `follow-up-${round}`);

  const evaluate = stepOf("evaluate", answerId);
  yield evaluate(500, "step", { status: "started" });
  for (const [position, name] of ["faithful", "complete", "polite"].entries()) {
    yield evaluate(500, "progress", { done: position + 1, total: 3 });
    yield evaluate(100, "score", { name, value: 0.97 - position * 0.04 });
  }
  yield evaluate(200, "step", { status: "finished" });
}

/** The answer token by token, and between its later tokens those of the next question, so that two generations run at once. */
function* tokens(talk: Talk, answerId: string, followUpId: string): Generator<Timed> {
  const generate = stepOf("generate", answerId);
  const suggest = stepOf("suggest", followUpId);
  const answer = tokensOf(talk.answer);
  const followUp = tokensOf(talk.followUp);
  const joinsAt = Math.max(0, answer.length - 3 * followUp.length);
  yield generate(300, "step", { status: "started" });
  let suggested = 0;
  for (const [index, text] of answer.entries()) {
    yield generate(readingMs(answer[index - 1]), "token", { text }, index);
    if (index === joinsAt) yield suggest(20, "step", { status: "started" });
    if (index >= joinsAt && (index - joinsAt) % 3 === 2 && suggested < followUp.length) {
      yield suggest(40, "token", { text: followUp[suggested] }, suggested++);
    }
  }
  while (suggested < followUp.length) yield suggest(120, "token", { text: followUp[suggested] }, suggested++);
  yield suggest(80, "usage", { tokens: followUp.length });
  yield suggest(50, "step", { status: "finished" });
  yield generate(80, "usage", { tokens: answer.length });
  yield generate(100, "step", { status: "finished" });
}

/** Cuts a text into pieces of at most seven letters, white space before each: `["A", " penstoc", "k", " is"]`. Joined, they are the text. */
export function tokensOf(text: string): string[] {
  return text.match(/\s*(?:[\p{L}\p{N}]{1,7}|[^\s\p{L}\p{N}]+)/gu) ?? [];
}

/** About five tokens a second, with a breath behind a sentence. */
function readingMs(before: string | undefined): number {
  if (before === undefined) return 400;
  if (/[.:?!]$/.test(before)) return 550;
  return before.endsWith(",") ? 320 : 130 + Math.random() * 90;
}

function stepOf(step: DemoEvent["step_name"], correlationId: string) {
  const stepRunId = randomUUID();
  return (afterMs: number, kind: DemoEvent["kind"], payload: object, index: number | null = null): Timed => ({
    afterMs,
    event: { step_run_id: stepRunId, step_name: step, kind, correlation_id: correlationId, index, payload },
  });
}
