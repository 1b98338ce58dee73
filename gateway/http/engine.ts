/** uWebSockets.js as this project uses it: loaded with its settings made, and with what its types leave out. */

import type { TemplatedApp } from "uWebSockets.js";
import { createRequire } from "node:module";

export type { HttpRequest, HttpResponse, us_listen_socket } from "uWebSockets.js";

/** An app of this build, which can do more than its types say. */
export interface EngineApp extends TemplatedApp {
  /** Seconds after which a connection closes when nothing moves behind an answer or a full socket; 0: never. Read at each write. */
  setResponseTimeout(seconds: number): void;
  /** Seconds for a request's head to come, and for the next 16 KiB a second of its body. */
  setIdleTimeout(seconds: number): void;
}

// Read by the engine when it is loaded: cookies and a JWT together often pass its own limit of 4 KiB.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";
const engine = createRequire(import.meta.url)("uWebSockets.js") as typeof import("uWebSockets.js") & {
  _cfg(name: string): void;
};
// No `uWebSockets: 20` header: it helps nobody but those who look for old versions.
engine._cfg("silent");

export const closeListenSocket = engine.us_listen_socket_close;

export function createApp(): EngineApp {
  return engine.App() as EngineApp;
}
