/** The admin port: /metrics, /healthz, /readyz. Plain node:http, for nothing here is hot, and it must answer when the worker cannot. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ListenError } from "../errors.ts";
import { METRICS_CONTENT_TYPE } from "../metrics/merge.ts";

export interface Readiness {
  readonly ready: boolean;
  readonly detail: string;
}

export interface AdminSources {
  /** Prometheus' text format. */
  metrics(): Promise<string>;
  readiness(): Readiness;
  /** Hears of what goes wrong while answering. */
  failed(error: Error): void;
}

export class AdminServer {
  readonly #sources: AdminSources;
  readonly #server: Server;

  constructor(sources: AdminSources) {
    this.#sources = sources;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: Error) => {
        sources.failed(error);
        send(request, response, 500, "application/json", JSON.stringify({ detail: "The answer could not be made." }));
      });
    });
  }

  /** Resolves with the port that was bound. Throws ListenError. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", (error: NodeJS.ErrnoException) => reject(new ListenError("--admin-port", host, port, error)));
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  /** Stops listening and drops what is open. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "/").split("?", 1)[0];
    const known = path === "/metrics" || path === "/healthz" || path === "/readyz";
    if (!known) return send(request, response, 404, "application/json", detail("There are /metrics, /healthz and /readyz."));
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return send(request, response, 405, "application/json", detail("Only GET and HEAD."));
    }
    if (path === "/metrics") return send(request, response, 200, METRICS_CONTENT_TYPE, await this.#sources.metrics());
    // Alive is who answers. Whether Redis answers is not asked: a restart would not bring it back.
    if (path === "/healthz") return send(request, response, 200, "application/json", JSON.stringify({ status: "alive" }));
    const { ready, detail: why } = this.#sources.readiness();
    return send(
      request,
      response,
      ready ? 200 : 503,
      "application/json",
      JSON.stringify({ status: ready ? "ready" : "not ready", detail: why }),
    );
  }
}

function detail(text: string): string {
  return JSON.stringify({ detail: text });
}

function send(request: IncomingMessage, response: ServerResponse, status: number, type: string, body: string): void {
  if (response.headersSent) return;
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body), "cache-control": "no-store" });
  response.end(request.method === "HEAD" ? undefined : body);
}
