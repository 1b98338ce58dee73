import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { Command } from "commander";
import { MAX_BATCH_EVENTS, MAX_BODY_BYTES } from "../../protocol/wire.ts";
import { PenstockError } from "../errors.ts";
import { batches } from "./client/batches.ts";
import { post } from "./client/post.ts";
import { addTargetOptions, type Target, targetOf } from "./client/target.ts";
import { EXIT, exitCodesHelp } from "./exit-codes.ts";
import { secondsOption, wholeNumberOption } from "./number-option.ts";

interface PublishOptions {
  readonly text?: true;
  readonly kind: string;
  readonly correlationId?: string;
  readonly stepName?: string;
  readonly index?: true;
  readonly end?: true;
  readonly batch: number;
  readonly retrySeconds: number;
}

const LINGER_MS = 20;
/** Far below the gateway's limit for a body, so that one is sent in the time that it has for it on a slow line, too. */
const MAX_BATCH_BYTES = MAX_BODY_BYTES / 4;

export function publishCommand(done: (code: number) => void): Command {
  const command = new Command("publish")
    .description("Publish the lines of stdin as events of a run: JSON objects as payloads, or text with --text.")
    .argument("<run>", "run id")
    .option("--text", 'each line is text: {"text": "<line>"}')
    .option("--kind <kind>", "kind of the events", "message")
    .option("--correlation-id <id>", "correlation id of the events")
    .option("--step-name <name>", "step name of the events")
    .option("--index", "number the events from 0")
    .option("--end", "end the run behind the last line")
    .addOption(wholeNumberOption("--batch <n>", "most events in one request", 1, MAX_BATCH_EVENTS, 100))
    .addOption(secondsOption("--retry-seconds <s>", "how long to try while the gateway is away", 60))
    .addHelpText(
      "after",
      exitCodesHelp("every line is stored", "a line is no JSON object, or the gateway refused, or stayed away"),
    );
  return addTargetOptions(command).action(async (runId: string, options: PublishOptions) => {
    try {
      const result = await publish(targetOf(command, runId, process.env), options);
      process.stdout.write(`${JSON.stringify(result)}\n`);
      done(EXIT.ok);
    } finally {
      // A producer that writes on must not keep us when the gateway has refused.
      process.stdin.destroy();
    }
  });
}

async function publish(target: Target, options: PublishOptions): Promise<{ count: number; last_id: string | null }> {
  const notice = (message: string): void => void process.stderr.write(`penstock: ${message}\n`);
  let count = 0;
  let lastId: string | null = null;
  const limits = { items: options.batch, bytes: MAX_BATCH_BYTES, lingerMs: LINGER_MS };
  for await (const batch of batches(events(process.stdin, options), limits)) {
    const answer = await post({
      target,
      path: "/events",
      body: `{"events":[${batch.join(",")}]}`,
      headers: { "idempotency-key": randomUUID() },
      retrySeconds: options.retrySeconds,
      notice,
    });
    count += batch.length;
    lastId = (answer as { last_id?: string | null }).last_id ?? lastId;
  }
  if (options.end === true) {
    const answer = await post({ target, path: "/end", body: null, retrySeconds: options.retrySeconds, notice });
    lastId = (answer as { last_id?: string | null }).last_id ?? lastId;
  }
  return { count, last_id: lastId };
}

/** Events as JSON text: a payload goes out as its line spells it, for `1.0` and 20-digit numbers would not survive a parse. */
async function* events(input: NodeJS.ReadableStream, options: PublishOptions): AsyncGenerator<string> {
  const fixed =
    `"kind":${JSON.stringify(options.kind)}` +
    (options.stepName === undefined ? "" : `,"step_name":${JSON.stringify(options.stepName)}`) +
    (options.correlationId === undefined ? "" : `,"correlation_id":${JSON.stringify(options.correlationId)}`);
  let line = 0;
  let index = 0;
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    line++;
    if (options.text !== true && text.trim() === "") continue;
    const payload = options.text === true ? JSON.stringify({ text }) : checkedObject(text, line);
    yield `{${fixed}${options.index === true ? `,"index":${index}` : ""},"payload":${payload}}`;
    index++;
  }
}

function checkedObject(text: string, line: number): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  } catch {
    // Told below, in the words of this command.
  }
  throw new PenstockError(
    "PENSTOCK_INPUT",
    `line ${line} is no JSON object; correct it, or publish text with --text. The lines before it are stored.`,
  );
}
