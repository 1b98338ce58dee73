/** A server that answers by script what a gateway answers in bad hours: 503, a cut in the middle, silence. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Answer = (response: ServerResponse, request: SeenRequest) => void;

export class ScriptedGateway {
  readonly seen: SeenRequest[] = [];
  url = "";
  readonly #answers: Answer[];
  readonly #server;

  /** Each request takes the next answer; the last one serves all others. */
  constructor(...answers: Answer[]) {
    this.#answers = answers;
    this.#server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) body += chunk;
      const seen = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
      this.seen.push(seen);
      const answer = this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
      answer?.(response, seen);
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

export function json(status: number, body: object, headers: Record<string, string> = {}): Answer {
  return (response) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

/** A stream of frames that then ends cleanly, is cut, or stays open. */
export function stream(frames: string, then: "ends" | "is cut" | "stays"): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(frames, () => {
      if (then === "ends") response.end();
      else if (then === "is cut") response.destroy();
    });
  };
}
