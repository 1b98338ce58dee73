/** The heap of another Node.js process after a collection, by its inspector: SIGUSR1 opens it on the loopback. */
import { setTimeout as pause } from "node:timers/promises";

/** Where the inspector of a process listens that was not told otherwise: one process at a time. */
const TARGETS_URL = "http://127.0.0.1:9229/json/list";
const OPEN_LIMIT_MS = 5_000;

/** Bytes of V8's heap that are in use when all garbage is gone. */
export async function heapAfterCollection(pid: number): Promise<number> {
  process.kill(pid, "SIGUSR1");
  const session = new Session(await targetUrl());
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

async function targetUrl(): Promise<string> {
  const deadline = performance.now() + OPEN_LIMIT_MS;
  for (;;) {
    const targets = await fetch(TARGETS_URL)
      .then((answer) => answer.json() as Promise<{ webSocketDebuggerUrl: string }[]>)
      .catch(() => []);
    if (targets[0] !== undefined) return targets[0].webSocketDebuggerUrl;
    if (performance.now() > deadline) throw new Error("the inspector did not open");
    await pause(20);
  }
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
