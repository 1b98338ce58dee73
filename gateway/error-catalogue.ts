/** Every error code, once: docs/errors.md and the OpenAPI description are made from this; a test keeps it equal to what the code throws. */

export interface ErrorEntry {
  /** HTTP status of the answer that carries it; null where it reaches the terminal or the log alone. */
  readonly status: number | null;
  readonly meaning: string;
  readonly wayOut: string;
}

/** In the order in which a request meets them, then those of the commands. */
export const ERRORS: Readonly<Record<string, ErrorEntry>> = {
  PENSTOCK_BAD_REQUEST: {
    status: 400,
    meaning:
      "The request is not framed as RFC 9112 asks: lengths that disagree, a Transfer-Encoding other than chunked, no or two Hosts.",
    wayOut: "Send it with an HTTP library, and look at the proxy between. The connection is closed.",
  },
  PENSTOCK_NOT_FOUND: { status: 404, meaning: "Nothing is at this path.", wayOut: "Look at /openapi.json, and at `pathPrefix`." },
  PENSTOCK_METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: "The path does not take this method.",
    wayOut: "Use one of those in Allow.",
  },
  PENSTOCK_UNAUTHORIZED: {
    status: 401,
    meaning: "There is no token, or one that is unknown, expired or not meant for this gateway.",
    wayOut: "Send `Authorization: Bearer` with a valid token; see docs/auth.md.",
  },
  PENSTOCK_AUTH_UNAVAILABLE: {
    status: 503,
    meaning: "The issuer's keys cannot be fetched, so no token can be checked.",
    wayOut: "Retry later; the log says why `auth.jwt.jwksUrl` does not answer.",
  },
  PENSTOCK_NO_BROKER: {
    status: 501,
    meaning: "No broker is configured.",
    wayOut: "Start the gateway with `--broker memory` or `--broker redis`.",
  },
  PENSTOCK_BAD_RUN_ID: {
    status: 422,
    meaning: "The run id is neither a UUID nor, unless `runIds` is uuid, a name of letters, digits, '.', '_' and '-'.",
    wayOut: "Use such an id, of at most 128 characters.",
  },
  PENSTOCK_FORBIDDEN: {
    status: 403,
    meaning: "The caller may not read this run, or not publish to it.",
    wayOut: "Give the token the right or scope, and the run; see docs/auth.md.",
  },
  PENSTOCK_UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    meaning: "The body is compressed, or its Content-Type is not JSON.",
    wayOut: "Send `Content-Type: application/json`, and the body as it is.",
  },
  PENSTOCK_BODY_TOO_LARGE: { status: 413, meaning: "The body is larger than 16 MiB.", wayOut: "Publish in smaller batches." },
  PENSTOCK_BODIES_BUSY: {
    status: 503,
    meaning:
      "The bodies that are being received, or the long answers that are being sent, take all the memory that is set aside for them.",
    wayOut: "Retry after the seconds in Retry-After.",
  },
  PENSTOCK_INVALID_JSON: {
    status: 400,
    meaning: "The body is not UTF-8, or not JSON (RFC 8259).",
    wayOut: "Correct it at the byte that the message names.",
  },
  PENSTOCK_INVALID_BATCH: {
    status: 422,
    meaning:
      "The body is JSON, but no batch of events: a field is missing or of another type, there are over 1,000 events, or JSON is nested too deep.",
    wayOut: "Correct the field that the message names.",
  },
  PENSTOCK_RUN_MISMATCH: {
    status: 400,
    meaning: "An event's `pipeline_run_id` is not the run of the URL.",
    wayOut: "Leave the field out, or publish to that run.",
  },
  PENSTOCK_RESERVED_KIND: {
    status: 400,
    meaning: "An event's kind is one of the names that only the server sends: end, gap, error, cursor, system.",
    wayOut: "Choose another kind.",
  },
  PENSTOCK_UNSAFE_KIND: {
    status: 400,
    meaning: "An event's kind has a CR, LF or NUL, which an event stream cannot carry in a name.",
    wayOut: "Take them out.",
  },
  PENSTOCK_EVENT_TOO_LARGE: {
    status: 413,
    meaning: "An event is larger than 69,632 bytes in the form in which it is stored. Nothing of its batch is stored.",
    wayOut: "Publish less in one event: a reference in place of the data.",
  },
  PENSTOCK_BAD_IDEMPOTENCY_KEY: {
    status: 400,
    meaning: "The Idempotency-Key is empty, came twice, or is longer than 255 bytes.",
    wayOut: "Send one key of at most 255 bytes, a UUID for instance.",
  },
  PENSTOCK_IDEMPOTENCY_CONFLICT: {
    status: 422,
    meaning: "This Idempotency-Key was used with another body within the last ten minutes.",
    wayOut: "Use a new key for a new batch.",
  },
  PENSTOCK_BAD_QUERY: {
    status: 400,
    meaning: "A position is no event id, or came twice, or `tail` or `limit` is no number.",
    wayOut: "Send positions as they came in an event's id, `<ms>-<seq>`.",
  },
  PENSTOCK_NOT_ACCEPTABLE: {
    status: 406,
    meaning: "The Accept header refuses text/event-stream.",
    wayOut: "Accept text/event-stream, or everything.",
  },
  PENSTOCK_TOO_MANY_SUBSCRIBERS: {
    status: 503,
    meaning: "The run has as many readers as `streaming.maxSubscribersPerStream` allows.",
    wayOut: "Close a reader, retry after the seconds in Retry-After, or raise the setting.",
  },
  PENSTOCK_AT_CAPACITY: {
    status: 503,
    meaning: "The worker holds as many streams as it may.",
    wayOut: "Retry after the seconds in Retry-After; add replicas, or raise `streaming.maxConnectionsPerWorker`.",
  },
  PENSTOCK_OVERLOADED: {
    status: 503,
    meaning: "The worker is short of memory, or its event loop lags; it takes no new streams until that is over.",
    wayOut: "Retry after the seconds in Retry-After; add replicas or memory (docs/running.md).",
  },
  PENSTOCK_BROKER_UNAVAILABLE: {
    status: 503,
    meaning: "The broker does not answer. Of a publish, `count` and `last_id` tell what is known to be stored; more may be.",
    wayOut: "Publish the same batch again with the same Idempotency-Key: nothing is stored twice.",
  },
  PENSTOCK_CONFIG: {
    status: null,
    meaning: "The configuration cannot be used; each line names a setting, where it came from, and what to write.",
    wayOut: "Correct it; `penstock config check` tells the same without starting anything.",
  },
  PENSTOCK_LISTEN: {
    status: null,
    meaning: "An address cannot be listened on.",
    wayOut: "Choose another with the flag that the message names.",
  },
  PENSTOCK_BROKER_START: {
    status: null,
    meaning: "The broker could not be reached, or refused us, at the first start.",
    wayOut: "Check the address, the user and the password; or start with `redis.pingOnStart: false`, to wait for it.",
  },
  PENSTOCK_REFUSED: {
    status: null,
    meaning: "A client command was refused by the gateway, whose own words follow.",
    wayOut: "As the gateway's error says.",
  },
  PENSTOCK_GAVE_UP: {
    status: null,
    meaning: "A client command could not reach the gateway in time.",
    wayOut: "Check `--url`; give it longer with `--retry-seconds`.",
  },
  PENSTOCK_BENCH: {
    status: null,
    meaning: "`penstock bench` could not measure: no gateway answers, or the result cannot be written.",
    wayOut: "As the message says.",
  },
  PENSTOCK_INPUT: {
    status: null,
    meaning: "A line given to `penstock publish` is no JSON object.",
    wayOut: "Correct the line, or publish text with `--text`.",
  },
};
