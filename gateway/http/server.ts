/** The HTTP side of a worker: routes, refusals, the listening socket. */

import type { RunIdMode } from "../../protocol/run-id.ts";
import { MAX_BODY_BYTES } from "../../protocol/wire.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Broker, BrokerLog } from "../broker/broker.ts";
import { RequestError } from "../errors.ts";
import { later } from "../later.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Streams } from "../worker/streams.ts";
import { type Answer, errorAnswer, rawJsonAnswer } from "./answer.ts";
import { ByteBudget } from "./byte-budget.ts";
import { createCors } from "./cors.ts";
import { endRun } from "./end-route.ts";
import { createApp } from "./engine.ts";
import { Exchange, type ExchangeContext } from "./exchange.ts";
import { framingFault } from "./guard.ts";
import { readHistory } from "./history-route.ts";
import { type GatewayInfo, infoDocument } from "./info.ts";
import { Listener } from "./listener.ts";
import { affordableConnections, openFilesLimit } from "./open-files.ts";
import { openApiDocument } from "./openapi.ts";
import { countRefusal, type ParseBatch, publish } from "./publish-route.ts";
import { fieldOf, readHead } from "./request-head.ts";
import { ALLOW, allows, createRouter, type Match, type RouteName } from "./routes.ts";
import { type Doorkeeper, enterRun, type RunCall } from "./run-call.ts";
import type { SinkContext } from "./sse-sink.ts";
import { countReject, openStream, type StreamServices } from "./stream-route.ts";

export interface HttpSettings {
  /** What stands before `/api/v1`: "" or such as `/zenml`. */
  readonly pathPrefix: string;
  readonly runIds: RunIdMode;
  /** Connections of any kind; the worker does not listen while it has so many. */
  readonly maxConnections: number;
  /** An ended stream whose last bytes are not taken for so long is cut. */
  readonly stallSeconds: number;
  readonly allowedOrigins: readonly string[];
  /** True when other workers listen on the same port. Default false: nobody else may. */
  readonly sharePort?: boolean;
  /** Bytes that all bodies of requests may hold together; default 256 MiB. */
  readonly bodyBudgetBytes?: number;
  /** Bytes that all long answers may hold together, until their clients have taken them; default 128 MiB. */
  readonly answerBudgetBytes?: number;
}

export interface HttpDeps {
  readonly settings: HttpSettings;
  readonly info: GatewayInfo;
  /** Null when none is configured: 501. `streams` is null then, too. */
  readonly broker: Broker | null;
  readonly streams: Streams | null;
  readonly authenticator: Authenticator;
  readonly parseBatch: ParseBatch;
  readonly metrics: Metrics;
  readonly log: BrokerLog;
}

export interface HttpServer {
  /** Resolves with the port. Rejects with ListenError. */
  listen(host: string, port: number): Promise<number>;
  /** Takes no new connections until `resumeAccepting`; those that are there go on. */
  pauseAccepting(): void;
  resumeAccepting(): void;
  /** Takes no new connections any more, and lets every answer close its connection. */
  startDraining(): void;
  /** True: bodies and long answers get room for one at a time. False: what is set. */
  holdBackBodies(on: boolean): void;
  /** Connections of any kind that this process can hold. */
  readonly maxConnections: number;
  /** Connections of any kind, idle ones included. */
  readonly connections: number;
  /** Requests that are still to be answered, open streams not counted. */
  readonly openExchanges: number;
  /** Cuts everything. */
  close(): void;
}

/** More is never needed, and what there is unless it is set. */
export const DEFAULT_BODY_BUDGET_BYTES = 256 * 1024 * 1024;
export const DEFAULT_ANSWER_BUDGET_BYTES = 128 * 1024 * 1024;
/** Room for one body of the largest size, with the block that it grows by. */
const HELD_BACK_BYTES = MAX_BODY_BYTES + 1024 * 1024;
/** Seconds for a head to come. */
const IDLE_SECONDS = 12;

export function createHttpServer(deps: HttpDeps): HttpServer {
  const { settings, log } = deps;
  const app = createApp();
  // A reader that reads slowly lives: how long a full socket may stay so is our own limit, by the progress it makes.
  app.setResponseTimeout(0);
  app.setIdleTimeout(IDLE_SECONDS);
  let draining = false;
  const isDraining = () => draining;
  const cors = createCors(settings.allowedOrigins);
  const budget = new ByteBudget(settings.bodyBudgetBytes ?? DEFAULT_BODY_BUDGET_BYTES);
  const answerBudget = new ByteBudget(settings.answerBudgetBytes ?? DEFAULT_ANSWER_BUDGET_BYTES);
  const context: ExchangeContext = {
    app,
    cors,
    budget,
    maxBodyBytes: MAX_BODY_BYTES,
    answerBudget,
    log,
    isDraining,
    openExchanges: 0,
  };
  const sinks: SinkContext = { app, stallMs: settings.stallSeconds * 1_000 };
  const handlers = createHandlers(deps, { cors, sinks, isDraining });
  const route = createRouter(settings.pathPrefix);

  const dispatch = (exchange: Exchange): void => {
    if (exchange.isOver) return;
    exchange.begin();
    const fault = framingFault(exchange.head);
    if (fault !== null) exchange.refuse(fault);
    else handle(exchange, route(exchange.head.path));
  };

  const handle = (exchange: Exchange, match: Match | null): void => {
    const { method } = exchange.head;
    if (match === null) {
      exchange.fail(new RequestError("PENSTOCK_NOT_FOUND", 404, "Nothing is here; see /openapi.json for what is."));
    } else if (method === "OPTIONS") {
      exchange.answer(optionsAnswer(exchange, ALLOW[match.route]));
    } else if (!allows(match.route, method)) {
      exchange.answer(notAllowed(ALLOW[match.route]));
    } else {
      handlers[match.route](exchange, match.rawRunId);
    }
  };

  const optionsAnswer = (exchange: Exchange, allow: string): Answer => {
    const { head } = exchange;
    const isPreflight = head.fields.has("origin") && head.fields.has("access-control-request-method");
    const headers = isPreflight ? cors.preflightFor(fieldOf(head, "origin"), allow) : [];
    return { status: 204, headers: [["allow", allow], ...headers], body: null };
  };

  app.any("/*", (res, req) => {
    // Answered later, never here: bytes behind a request that is answered in this call would be served as the next one, whatever they are.
    later(dispatch, new Exchange(res, readHead(req), context));
  });

  const maxConnections = affordableConnections(settings.maxConnections, openFilesLimit());
  if (maxConnections < settings.maxConnections)
    log.warn(
      { wanted: settings.maxConnections, maxConnections },
      "the limit of open files allows fewer connections; raise it (ulimit -n)",
    );
  const listener = new Listener(app, { maxConnections, sharePort: settings.sharePort ?? false, log });

  return {
    listen: (host, port) => listener.listen(host, port),
    pauseAccepting: () => listener.pause(),
    resumeAccepting: () => listener.resume(),
    startDraining() {
      draining = true;
      listener.close();
    },
    holdBackBodies(on) {
      for (const each of [budget, answerBudget]) each.holdBackTo(on ? HELD_BACK_BYTES : null);
    },
    maxConnections,
    get connections() {
      return listener.connections;
    },
    get openExchanges() {
      return context.openExchanges;
    },
    close() {
      listener.close();
      app.close();
    },
  };
}

type Handler = (exchange: Exchange, rawRunId: string) => void;
type StreamParts = Pick<StreamServices, "cors" | "sinks" | "isDraining">;

function createHandlers(deps: HttpDeps, parts: StreamParts): Readonly<Record<RouteName, Handler>> {
  const { settings, metrics } = deps;
  const door: Doorkeeper = { authenticator: deps.authenticator, broker: deps.broker, runIds: settings.runIds };
  const info = rawJsonAnswer(200, JSON.stringify(infoDocument(deps.info, deps.authenticator.scheme)));
  const openapi = rawJsonAnswer(
    200,
    JSON.stringify(openApiDocument({ pathPrefix: settings.pathPrefix, version: deps.info.version })),
  );

  // Without a broker there are no streams, and nobody gets as far as to open one.
  const streamServices: StreamServices = { ...parts, streams: deps.streams! };
  const open = (call: RunCall) => openStream(call, streamServices);

  const run = (
    exchange: Exchange,
    rawRunId: string,
    action: "read" | "publish",
    work: (call: RunCall) => void | Promise<void>,
    failed: (error: unknown) => void = () => {},
  ): void => {
    const fail = (error: unknown): void => {
      failed(error);
      exchange.fail(error);
    };
    try {
      const call = enterRun(door, exchange, rawRunId, action);
      const done = call instanceof Promise ? call.then(work) : work(call);
      if (done instanceof Promise) done.catch(fail);
    } catch (error) {
      fail(error);
    }
  };

  return {
    events(exchange, rawRunId) {
      if (exchange.head.method === "POST")
        run(
          exchange,
          rawRunId,
          "publish",
          (call) => publish(call, deps),
          (error) => countRefusal(error, metrics),
        );
      else run(exchange, rawRunId, "read", readHistory);
    },
    stream(exchange, rawRunId) {
      run(exchange, rawRunId, "read", open, (error) => countReject(error, metrics));
    },
    end: (exchange, rawRunId) => run(exchange, rawRunId, "publish", endRun),
    info: (exchange) => exchange.answer(info),
    openapi: (exchange) => exchange.answer(openapi),
  };
}

function notAllowed(allow: string): Answer {
  const answer = errorAnswer(new RequestError("PENSTOCK_METHOD_NOT_ALLOWED", 405, `This resource takes ${allow}.`))!;
  return { ...answer, headers: [["allow", allow], ...answer.headers] };
}
