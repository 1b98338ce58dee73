import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { ReadBuffer } from "./read-buffer.ts";

test("what a socket brought stays as it is while more is read, over many blocks", async () => {
  const sent = Buffer.alloc(1_000_000, "0123456789abcdef of one block after the other, ");
  const server = createServer((socket) => socket.end(sent));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const chunks: Buffer[] = [];
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: "127.0.0.1", port, onread: new ReadBuffer((chunk) => chunks.push(chunk)) });
  await once(socket, "close");
  server.close();
  expect(chunks.length).toBeGreaterThan(1_000_000 / (64 * 1024));
  expect(Buffer.concat(chunks).equals(sent)).toBe(true);
});
