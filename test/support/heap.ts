/** The heap of another Node.js process after a collection, by its inspector, which SIGUSR1 opens on the loopback. */
import { waitFor } from "./wait-for.ts";

/** To be in the environment of the process: any free port will do. */
export const INSPECTOR_ENV = { NODE_OPTIONS: "--inspect-port=0" };

const OPEN_LIMIT_MS = 5_000;
/** What Node.js writes to stderr. */
const LISTENING = /^Debugger listening on (ws:\S+)$/gm;

/** Bytes of V8's heap that are in use when all garbage is gone. `log` gives all that the process has written so far. */
export async function heapAfterCollection(pid: number, log: () => string): Promise<number> {
  const before = addresses(log()).length;
  process.kill(pid, "SIGUSR1");
  await waitFor("the inspector", () => addresses(log()).length > before, OPEN_LIMIT_MS);
  const session = new Session(addresses(log()).at(-1)!);
  await session.ready;
  try {
    await session.ask("HeapProfiler.collectGarbage");
    const { usedSize } = (await session.ask("Runtime.getHeapUsage")) as { usedSize: number };
    return usedSize;
  } finally {
    // Its answer may not come any more.
    session.tell("Runtime.evaluate", { expression: "process.getBuiltinModule('inspector').close()" });
    await session.closed;
  }
}

function addresses(log: string): string[] {
  return [...log.matchAll(LISTENING)].map(([, address]) => address!);
}

class Session {
  readonly ready: Promise<void>;
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #open = new Map<number, (result: unknown) => void>();
  #lastId = 0;

  constructor(url: string) {
    this.#socket = new WebSocket(url);
    this.ready = new Promise((resolve, reject) => {
      this.#socket.onopen = () => resolve();
      this.#socket.onerror = () => reject(new Error("the inspector did not answer"));
    });
    this.closed = new Promise((resolve) => {
      this.#socket.onclose = () => resolve();
    });
    this.#socket.onmessage = ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
      if (id !== undefined) this.#open.get(id)?.(result);
    };
  }

  ask(method: string): Promise<unknown> {
    return new Promise((resolve) => this.#open.set(this.tell(method), resolve));
  }

  tell(method: string, params: object = {}): number {
    const id = ++this.#lastId;
    this.#socket.send(JSON.stringify({ id, method, params }));
    return id;
  }
}
