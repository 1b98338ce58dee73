/** `GET /openapi.json`: the interface as an OpenAPI 3.1 document, made from the limits and names that the code itself uses. */
import { GAP_REASONS, MAX_BATCH_EVENTS, MAX_BODY_BYTES, MAX_FRAME_BYTES, RESERVED_KINDS } from "../../protocol/wire.ts";
import { RETRY_AFTER_SECONDS } from "./answer.ts";
import { MAX_KEY_BYTES } from "./publish-route.ts";
import { DEFAULT_PAGE_LIMIT, MAX_PAGE_LIMIT } from "./query.ts";

export interface OpenApiOptions {
  /** What stands before every path: "" or such as `/zenml`. */
  readonly pathPrefix: string;
  readonly version: string;
}

/** A value of JSON. The document is data all through, so nothing finer would hold. */
type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
type JsonObject = { readonly [name: string]: Json };

export function openApiDocument({ pathPrefix, version }: OpenApiOptions): JsonObject {
  return {
    openapi: "3.1.0",
    info: {
      title: "Penstock",
      version,
      description:
        "A gateway for live event streams: publish batches of events of a run, read them as Server-Sent Events, resume without loss.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: pathPrefix === "" ? "/" : pathPrefix }],
    security: [{ bearer: [] }],
    paths: {
      "/api/v1/runs/{runId}/events": {
        parameters: [ref("parameters", "runId")],
        post: publishOperation(),
        get: historyOperation(),
      },
      "/api/v1/runs/{runId}/events/stream": { parameters: [ref("parameters", "runId")], get: streamOperation() },
      "/api/v1/runs/{runId}/end": { parameters: [ref("parameters", "runId")], post: endOperation() },
      "/api/v1/info": { get: infoOperation() },
      "/openapi.json": { get: documentOperation() },
    },
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      parameters: { runId: runIdParameter(), since: sinceParameter(), lastEventId: lastEventIdParameter() },
      schemas: { PublishedEvent: publishedEvent(), Event: storedEvent(), Gap: gap(), Error: errorSchema(), EventId: eventId() },
      responses: errorResponses(),
    },
  };
}

function publishOperation(): JsonObject {
  return {
    operationId: "publishEvents",
    summary: "Store a batch of events, all or nothing, in order.",
    description: `The path may also end with a slash. An empty batch checks the caller's right and stores nothing. A frame is the event as it is stored, at most ${MAX_FRAME_BYTES} bytes.`,
    parameters: [
      {
        name: "Idempotency-Key",
        in: "header",
        description: "The same key with the same body is stored once within 10 minutes, on whichever replica it arrives.",
        schema: { type: "string", minLength: 1, maxLength: MAX_KEY_BYTES },
      },
    ],
    requestBody: {
      required: true,
      description: `JSON in UTF-8, at most ${MAX_BODY_BYTES} bytes, not compressed. Any type application/*+json is taken, too.`,
      content: {
        "application/json": {
          schema: {
            type: "object",
            required: ["events"],
            properties: { events: { type: "array", maxItems: MAX_BATCH_EVENTS, items: ref("schemas", "PublishedEvent") } },
          },
        },
      },
    },
    responses: {
      "200": json("The batch is stored.", {
        type: "object",
        required: ["count", "last_id"],
        properties: { count: { type: "integer" }, last_id: { oneOf: [ref("schemas", "EventId"), { type: "null" }] } },
      }),
      ...errors("400", "401", "403", "413", "415", "422", "501"),
      "503": {
        ...unavailable(
          "Not confirmed; it may still be stored. When a part is known to be stored, the body says how many events and the last id.",
        ),
        content: {
          "application/json": {
            schema: {
              allOf: [
                ref("schemas", "Error"),
                { type: "object", properties: { count: { type: "integer" }, last_id: ref("schemas", "EventId") } },
              ],
            },
          },
        },
      },
    },
  };
}

function historyOperation(): JsonObject {
  return {
    operationId: "readHistory",
    summary: "A page of the events that are kept.",
    parameters: [
      ref("parameters", "since"),
      ref("parameters", "lastEventId"),
      {
        name: "limit",
        in: "query",
        description: "At most so many events. A page may hold fewer although more follow.",
        schema: { type: "integer", minimum: 1, maximum: MAX_PAGE_LIMIT, default: DEFAULT_PAGE_LIMIT },
      },
    ],
    responses: {
      "200": json("The page.", {
        type: "object",
        required: ["events", "next", "gap"],
        properties: {
          events: {
            type: "array",
            items: {
              type: "object",
              required: ["id", "event"],
              properties: { id: ref("schemas", "EventId"), event: ref("schemas", "Event") },
            },
          },
          next: {
            description: "The `since` of the next page; null when nothing more is kept at present.",
            oneOf: [ref("schemas", "EventId"), { type: "null" }],
          },
          gap: { description: "What is missing before the first event.", oneOf: [ref("schemas", "Gap"), { type: "null" }] },
        },
      }),
      ...errors("400", "401", "403", "422", "501"),
      "503": unavailable("The broker cannot be read at present."),
    },
  };
}

function streamOperation(): JsonObject {
  const filter = (name: string, what: string): JsonObject => ({
    name,
    in: "query",
    description: `Only events with this ${what}; may stand several times. A blank value is no filter, and commas are part of a value.`,
    schema: { type: "array", items: { type: "string" } },
    style: "form",
    explode: true,
  });
  return {
    operationId: "streamEvents",
    summary: "Follow a run as Server-Sent Events.",
    description:
      `Each event has the id of its entry and its kind as event name. The server's own names are ${RESERVED_KINDS.join(", ")}: ` +
      "`end` ends the stream, `gap` tells what was or may have been lost, `cursor` moves the resume position.",
    parameters: [
      ref("parameters", "since"),
      ref("parameters", "lastEventId"),
      {
        name: "tail",
        in: "query",
        description:
          "Without a position: begin with the last so many entries, 0 for live ones only. Without either: from the oldest.",
        schema: { type: "integer", minimum: 0 },
      },
      filter("kinds", "kind"),
      filter("step_names", "step name"),
      filter("correlation_ids", "correlation id"),
    ],
    responses: {
      "200": {
        description: "The stream, until the run or the caller's right ends.",
        content: { "text/event-stream": { schema: { type: "string" } } },
      },
      ...errors("400", "401", "403", "406", "422", "501"),
      "503": unavailable(
        "The run or this server has no place for another subscriber. A broker that is away is no reason: the stream waits.",
      ),
    },
  };
}

function endOperation(): JsonObject {
  return {
    operationId: "endRun",
    summary: "Tell all readers that the run is over. Saying it again changes nothing.",
    responses: {
      "200": json("The end is stored.", {
        type: "object",
        required: ["last_id"],
        properties: { last_id: ref("schemas", "EventId") },
      }),
      ...errors("401", "403", "422", "501"),
      "503": unavailable("Not confirmed."),
    },
  };
}

function infoOperation(): JsonObject {
  return {
    operationId: "info",
    summary: "What ZenML's client asks of a server first.",
    security: [],
    responses: {
      "200": json("Versions and the way of authentication.", {
        type: "object",
        required: ["version", "auth_scheme", "deployment_id", "penstock_version"],
        properties: {
          id: { type: "string", format: "uuid" },
          version: { type: "string" },
          auth_scheme: { type: "string" },
          deployment_id: { type: ["string", "null"] },
          penstock_version: { type: "string" },
        },
      }),
    },
  };
}

function documentOperation(): JsonObject {
  return {
    operationId: "openapi",
    summary: "This document.",
    security: [],
    responses: { "200": json("The document.", { type: "object" }) },
  };
}

function publishedEvent(): JsonObject {
  return {
    type: "object",
    required: ["kind"],
    properties: {
      pipeline_run_id: { type: "string", description: "The URL's run when absent; must name it otherwise." },
      step_run_id: { type: ["string", "null"], format: "uuid" },
      step_name: { type: ["string", "null"] },
      kind: {
        type: "string",
        description: `Any text without CR, LF and NUL but ${RESERVED_KINDS.join(", ")}.`,
        not: { enum: [...RESERVED_KINDS] },
      },
      correlation_id: { type: ["string", "null"] },
      index: { type: ["integer", "null"], description: "Of any size." },
      payload: { type: "object", default: {}, description: "Numbers keep their spelling, members their order." },
    },
  };
}

function storedEvent(): JsonObject {
  const fields = ["pipeline_run_id", "step_run_id", "step_name", "kind", "correlation_id", "index", "payload"];
  return { allOf: [ref("schemas", "PublishedEvent"), { type: "object", required: fields }] };
}

function gap(): JsonObject {
  return {
    type: "object",
    required: ["reason", "from", "to", "missed"],
    properties: {
      reason: { enum: [...GAP_REASONS] },
      from: { type: ["string", "null"], description: "The last id before." },
      to: { type: ["string", "null"], description: "The first id after, when it is known." },
      missed: { type: ["integer", "null"], description: "How many events, when that is known." },
    },
  };
}

function errorSchema(): JsonObject {
  return {
    type: "object",
    required: ["detail"],
    properties: { detail: { type: "string", description: "For people: what is wrong, and what to do." } },
  };
}

function eventId(): JsonObject {
  return { type: "string", pattern: "^[0-9]{1,20}-[0-9]{1,20}$", description: "`<milliseconds>-<sequence>`, rising." };
}

function runIdParameter(): JsonObject {
  return {
    name: "runId",
    in: "path",
    required: true,
    description: "A UUID in any spelling, or another name of letters, digits, '.', '_' and '-' where the server takes such.",
    schema: { type: "string", minLength: 1, maxLength: 128 },
  };
}

function sinceParameter(): JsonObject {
  return {
    name: "since",
    in: "query",
    description: "Go on behind this id, which need not exist: it may be a time. Empty is none.",
    schema: { type: "string" },
  };
}

function lastEventIdParameter(): JsonObject {
  return {
    name: "Last-Event-ID",
    in: "header",
    description:
      "Go on behind this id, which a reader held: where it no longer exists, a gap comes first. Wins over `since`; empty is none.",
    schema: { type: "string" },
  };
}

const ERRORS = {
  "400":
    "The request cannot be read: its framing, its query, JSON or UTF-8; or an event has a reserved kind or names another run.",
  "401": "The caller is not known. Always with WWW-Authenticate.",
  "403": "The caller may not do this to this run.",
  "406": "Accept refuses the only type that there is.",
  "413": "The body or an event is too large.",
  "415": "The body is compressed, or its type is not JSON.",
  "422": "The run id or the batch has the wrong shape.",
  "501": "No broker is configured.",
} as const;

function errorResponses(): JsonObject {
  return Object.fromEntries(
    Object.entries(ERRORS).map(([status, text]) => [`Error${status}`, json(text, ref("schemas", "Error"))]),
  );
}

function errors(...statuses: (keyof typeof ERRORS)[]): JsonObject {
  return Object.fromEntries(statuses.map((status) => [status, ref("responses", `Error${status}`)]));
}

function unavailable(description: string): JsonObject {
  return {
    ...json(description, ref("schemas", "Error")),
    headers: { "Retry-After": { description: "Seconds.", schema: { type: "integer", examples: [RETRY_AFTER_SECONDS] } } },
  };
}

function json(description: string, schema: JsonObject): JsonObject {
  return { description, content: { "application/json": { schema } } };
}

function ref(part: "parameters" | "schemas" | "responses", name: string): JsonObject {
  return { $ref: `#/components/${part}/${name}` };
}
