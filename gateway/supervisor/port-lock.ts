/**
 * One gateway an address and port, also while its workers do not listen because they are full, and when two start in the same moment.
 * A listening socket in the kernel's abstract namespace: it leaves no file, goes with its process, and is seen where the port is, in this
 * network namespace (unix(7)). Elsewhere than on Linux there is none, and the look for a free port has to do.
 */
import { createServer, type Server } from "node:net";
import { ListenError } from "../errors.ts";
import { addressOf } from "../http/free-port.ts";

export class PortLock {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Rejects with ListenError when another gateway has the port. */
  static async take(host: string, port: number): Promise<PortLock | null> {
    if (process.platform !== "linux" || port === 0) return null;
    const address = await addressOf(host, port);
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error: NodeJS.ErrnoException) => reject(new ListenError("--port", host, port, error)));
      server.listen(`\0penstock ${address} ${port}`, resolve);
    });
    server.unref();
    return new PortLock(server);
  }

  release(): void {
    this.#server.close();
  }
}
