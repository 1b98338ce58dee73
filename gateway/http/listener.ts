/** The listening socket: opened on a port that is known to be free, closed while the worker is full, opened again. */
import type { BrokerLog } from "../broker/broker.ts";
import { ListenError } from "../errors.ts";
import { closeListenSocket, type EngineApp, type us_listen_socket } from "./engine.ts";
import { addressOf, freePort } from "./free-port.ts";

/** LIBUS_LISTEN_EXCLUSIVE_PORT: nobody else may listen on the port beside us. */
const EXCLUSIVE_PORT = 1;
const REOPEN_MS = 1_000;
/** A full worker listens again when so much of its room is taken. */
const REOPEN_SHARE = 0.9;

export interface ListenerOptions {
  readonly maxConnections: number;
  /** True when other workers listen on the same port. */
  readonly sharePort: boolean;
  readonly log: BrokerLog;
}

export class Listener {
  readonly #app: EngineApp;
  readonly #options: ListenerOptions;
  #socket: us_listen_socket | null = null;
  #address = "";
  #port = 0;
  #connections = 0;
  #full = false;
  #paused = false;
  #over = false;
  #retry: NodeJS.Timeout | null = null;

  constructor(app: EngineApp, options: ListenerOptions) {
    this.#app = app;
    this.#options = options;
    app.filter((_res, change) => this.#counted(Number(change)));
  }

  get connections(): number {
    return this.#connections;
  }

  /** Resolves with the port, the one that was found for 0. Rejects with ListenError. */
  async listen(host: string, port: number): Promise<number> {
    this.#address = await addressOf(host, port);
    // The engine would share a port with a stranger and not say a word. And for port 0 it leaves SO_REUSEADDR off, so that the socket
    // could not be opened again while connections are left: a free port is found here.
    this.#port = port !== 0 && this.#options.sharePort ? port : await freePort(host, port);
    if (!this.#open()) throw new ListenError("--port", host, port, Object.assign(new Error("refused"), { code: "EADDRINUSE" }));
    return this.#port;
  }

  pause(): void {
    this.#paused = true;
    this.#follow();
  }

  resume(): void {
    this.#paused = false;
    this.#follow();
  }

  /** For good. */
  close(): void {
    this.#over = true;
    this.#follow();
  }

  #counted(change: number): void {
    this.#connections += change;
    const { maxConnections, log } = this.#options;
    if (!this.#full && this.#connections >= maxConnections) {
      this.#full = true;
      // At once, in the engine's own accept loop: it stops when its socket is gone.
      this.#follow();
      log.warn({ connections: this.#connections }, "no more connections are taken until one in ten has gone");
    } else if (this.#full && this.#connections <= maxConnections * REOPEN_SHARE) {
      this.#full = false;
      setImmediate(() => this.#follow());
    }
  }

  /** Brings the socket to where it should be. */
  #follow(): void {
    if (this.#port === 0) return;
    if (this.#full || this.#paused || this.#over) {
      if (this.#retry !== null) clearTimeout(this.#retry);
      this.#retry = null;
      if (this.#socket !== null) closeListenSocket(this.#socket);
      this.#socket = null;
    } else if (this.#socket === null && this.#retry === null && !this.#open()) {
      this.#options.log.error({ port: this.#port }, "the port cannot be listened on again; trying further");
      this.#retry = setTimeout(() => {
        this.#retry = null;
        this.#follow();
      }, REOPEN_MS);
    }
  }

  #open(): boolean {
    const took = (socket: us_listen_socket | false) => {
      if (socket !== false) this.#socket = socket;
    };
    // The engine's types lack the form with host and options.
    const listen = this.#app.listen.bind(this.#app) as unknown as (
      host: string,
      port: number,
      options: number,
      took: Took,
    ) => void;
    if (this.#options.sharePort) this.#app.listen(this.#address, this.#port, took);
    else listen(this.#address, this.#port, EXCLUSIVE_PORT, took);
    return this.#socket !== null;
  }
}

type Took = (socket: us_listen_socket | false) => void;
