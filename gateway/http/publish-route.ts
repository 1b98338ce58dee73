/** `POST …/events`: stores a batch. */
import { hash } from "node:crypto";
import { MAX_BODY_BYTES } from "../../protocol/wire.ts";
import type { Idempotency } from "../broker/broker.ts";
import { BrokerUnavailableError, PenstockError, RequestError } from "../errors.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { jsonAnswer } from "./answer.ts";
import { tooLarge } from "./body.ts";
import { fieldOf, type RequestHead } from "./request-head.ts";
import type { RunCall } from "./run-call.ts";

/** Reads a body as a batch of broker frames; gives up early when `isOver` turns true. Throws RequestError 400, 413 or 422. */
export type ParseBatch = (body: Buffer, runId: string, isOver: () => boolean) => Batch | Promise<Batch>;
interface Batch {
  readonly entries: readonly Buffer[];
}

export interface PublishServices {
  readonly parseBatch: ParseBatch;
  readonly metrics: Metrics;
}

/** Throws, or rejects with, RequestError or BrokerUnavailableError. Answers 200 with the count and the last id. */
export function publish(call: RunCall, services: PublishServices): Promise<void> {
  const { head, body } = call.exchange;
  checkContent(head);
  const idempotencyKey = keyOf(head);
  if (body === null) return store(call, NOTHING, idempotencyKey, services);
  // Most bodies are there with their head. Each promise less is felt.
  const whole = body.readNow();
  if (whole !== null) return store(call, whole, idempotencyKey, services);
  return body.read().then((bytes) => store(call, bytes, idempotencyKey, services));
}

async function store(call: RunCall, body: Buffer, idempotencyKey: string | null, services: PublishServices): Promise<void> {
  const { exchange, runId, broker } = call;
  try {
    const parsed = services.parseBatch(body, runId, () => exchange.isOver);
    const { entries } = parsed instanceof Promise ? await parsed : parsed;
    if (exchange.isOver) return;
    let result = { count: 0, lastId: null as string | null };
    if (entries.length > 0) {
      const idempotency = idempotencyKey === null ? null : idempotencyOf(call, idempotencyKey, body);
      try {
        result = await broker.publish({ runId, entries, idempotency });
      } catch (error) {
        throw error instanceof BrokerUnavailableError ? publishFailed(error) : error;
      }
      services.metrics.inc("penstock_events_published_total", undefined, result.count);
    }
    services.metrics.inc("penstock_publishes_total", "ok");
    exchange.answer(jsonAnswer(200, { count: result.count, last_id: result.lastId }));
  } finally {
    exchange.body?.release();
  }
}

/** Counts a publish that was not answered with 200. */
export function countRefusal(error: unknown, metrics: Metrics): void {
  const status = error instanceof PenstockError ? (error.status ?? 500) : 500;
  metrics.inc("penstock_publishes_total", status < 500 ? "refused" : "unavailable");
}

function checkContent(head: RequestHead): void {
  const encoding = fieldOf(head, "content-encoding");
  if (encoding !== null && !/^(identity)?$/i.test(encoding))
    throw new RequestError("PENSTOCK_UNSUPPORTED_MEDIA_TYPE", 415, "The body must not be compressed.");
  const type = fieldOf(head, "content-type");
  if (type !== "application/json" && (type === null || !JSON_TYPE.test(type)))
    throw new RequestError("PENSTOCK_UNSUPPORTED_MEDIA_TYPE", 415, "Content-Type must be application/json.");
  if (Number(fieldOf(head, "content-length") ?? 0) > MAX_BODY_BYTES) throw tooLarge(MAX_BODY_BYTES);
}

function keyOf(head: RequestHead): string | null {
  const key = head.fields["idempotency-key"];
  if (key === null) return null;
  if (typeof key !== "string") throw badKey("must not stand twice");
  if (key.length > MAX_KEY_BYTES) throw badKey(`must not exceed ${MAX_KEY_BYTES} bytes`);
  if (key === "") throw badKey("must not be empty");
  return key;
}

/** `charset` has no meaning for JSON, which is UTF-8 (RFC 8259 8.1, 11). */
const JSON_TYPE = /^application\/(json|[a-z0-9!#$&^_.+-]+\+json)[ \t]*(;|$)/i;
export const MAX_KEY_BYTES = 255;
const NOTHING = Buffer.alloc(0);

function badKey(what: string): RequestError {
  return new RequestError("PENSTOCK_BAD_IDEMPOTENCY_KEY", 400, `Idempotency-Key ${what}.`);
}

function idempotencyOf(call: RunCall, key: string, body: Buffer): Idempotency {
  return { scope: call.identity.id, key, bodyHash: hash("sha256", body, "hex") };
}

/** What the broker says may name machines: it is for the log. */
function publishFailed(error: BrokerUnavailableError): BrokerUnavailableError {
  const { count, lastId } = error;
  return new BrokerUnavailableError("Broker publish failed; try again with the same Idempotency-Key.", count, lastId, {
    cause: error,
  });
}
