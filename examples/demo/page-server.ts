/** Serves the demo's page: a few files and one JSON answer that names the gateway. The stream itself does not pass through here. */
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css", json: "application/json" };
const FILES = ["index.html", "app.js", "reader.js", "sequence.js", "generations.js", "filter.js", "view.js", "style.css"];

/** What the page has to know. */
export interface PageSettings {
  readonly gateway: string;
  readonly runId: string;
  readonly kinds: readonly string[];
  readonly steps: readonly string[];
}

export interface PageServer {
  readonly port: number;
  /** Until it is called, `/settings.json` answers 503. */
  ready(settings: PageSettings): void;
  close(): void;
}

/** Listens on a loopback port, 0 for any free one. */
export async function startPageServer(port: number): Promise<PageServer> {
  let settings: PageSettings | null = null;
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://page").pathname;
    const name = path === "/" ? "index.html" : path.slice(1);
    if (name === "settings.json")
      return void response.writeHead(settings ? 200 : 503, headersOf(name)).end(JSON.stringify(settings));
    if (!FILES.includes(name)) return void response.writeHead(404).end();
    const body = await readFile(new URL(`page/${name}`, import.meta.url));
    response.writeHead(200, headersOf(name)).end(body);
  });
  await listen(server, port);
  return {
    port: (server.address() as AddressInfo).port,
    ready(known) {
      settings = known;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === "EADDRINUSE";
      reject(isTaken ? new Error(`Port ${port} is taken; give another with --port, or none.`) : error);
    });
    server.listen(port, "127.0.0.1", resolve);
  });
}

function headersOf(name: string): Record<string, string> {
  return { "content-type": `${TYPES[name.split(".").at(-1)!]}; charset=utf-8`, "cache-control": "no-store" };
}
