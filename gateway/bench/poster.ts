/** POSTs over a few connections that are kept. */
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { type BenchTarget, runPath } from "./bench-target.ts";

export interface PostAnswer {
  /** 0 where there was no answer. */
  readonly status: number;
  /** The body, or why there was none. */
  readonly text: string;
}

const CONNECTIONS = 32;
const ANSWER_LIMIT_MS = 10_000;
/** Below the time after which a server closes an idle connection, so that no request meets one that is just closing. */
const IDLE_MS = 4_000;

export class Poster {
  readonly #target: BenchTarget;
  readonly #agent: HttpAgent;

  constructor(target: BenchTarget) {
    this.#target = target;
    const options = { keepAlive: true, maxSockets: CONNECTIONS, timeout: IDLE_MS };
    this.#agent = target.secure ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** Never rejects. `rest` is the path below the run. */
  post(runId: string, rest: string, body: string): Promise<PostAnswer> {
    return new Promise((resolve) => {
      const { secure, host, port, headers } = this.#target;
      const outgoing = (secure ? httpsRequest : httpRequest)({
        agent: this.#agent,
        method: "POST",
        host,
        port,
        path: runPath(this.#target, runId, rest),
        headers: { ...headers, "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      });
      const limit = setTimeout(() => outgoing.destroy(new Error(`no answer in ${ANSWER_LIMIT_MS / 1_000} s`)), ANSWER_LIMIT_MS);
      const finish = (status: number, text: string): void => {
        clearTimeout(limit);
        resolve({ status, text });
      };
      outgoing.on("error", (error) => finish(0, error.message));
      outgoing.on("response", (incoming) => {
        let text = "";
        incoming.setEncoding("utf8");
        incoming.on("data", (part: string) => {
          text += part;
        });
        incoming.on("end", () => finish(incoming.statusCode ?? 0, text));
        incoming.on("error", (error) => finish(0, error.message));
      });
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** What a refusal says, in one line: the gateway's own words where it has some. */
export function refusalText(status: number, body: string): string {
  if (status === 0) return body;
  try {
    const { detail } = JSON.parse(body) as { detail?: unknown };
    if (typeof detail === "string") return `${status}: ${detail}`;
  } catch {
    // Not JSON: shown as it is.
  }
  return `${status}: ${body.replace(/\s+/g, " ").slice(0, 200)}`;
}
