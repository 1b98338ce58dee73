/** Whether a port is free, asked of the kernel: the engine would share it with a stranger and not say a word. */
import { lookup } from "node:dns/promises";
import { type AddressInfo, createServer } from "node:net";
import { ListenError } from "../errors.ts";

/** The address that a host name stands for. Rejects with ListenError. */
export async function addressOf(host: string, port: number): Promise<string> {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    throw new ListenError("--host", host, port, error as NodeJS.ErrnoException);
  }
}

/** Binds and lets go. Resolves with the port, one that is free for 0. Rejects with ListenError. */
export async function freePort(host: string, port: number): Promise<number> {
  const address = await addressOf(host, port);
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(new ListenError(error.code === "EADDRNOTAVAIL" ? "--host" : "--port", host, port, error));
    });
    server.listen({ host: address, port, exclusive: true }, () => {
      const bound = server.address() as AddressInfo;
      server.close(() => resolve(bound.port));
    });
  });
}
