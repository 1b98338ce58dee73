/** A TCP proxy that loses answers: it hands a request on and cuts the client's connection when the answer comes. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

export interface LossyProxy {
  readonly url: string;
  /** Answers lost so far. */
  readonly lostAnswers: number;
  close(): Promise<void>;
}

/** Connections go to the ports in turn; of the answers that confirm a publish every second is lost, until `losses` are. */
export async function startLossyProxy(ports: readonly number[], losses: number): Promise<LossyProxy> {
  let connections = 0;
  let confirmed = 0;
  let lostAnswers = 0;
  const server = createServer((client) => {
    const upstream = connect(ports[connections++ % ports.length]!, "127.0.0.1");
    client.pipe(upstream);
    upstream.on("data", (bytes) => {
      if (bytes.includes('"count":') && ++confirmed % 2 === 0 && lostAnswers < losses) {
        lostAnswers++;
        client.destroy();
        upstream.destroy();
      } else client.write(bytes);
    });
    for (const [socket, other] of [[client, upstream] as const, [upstream, client] as const]) {
      // A reset of one side is a cut for the other; that is what the proxy is for.
      socket.on("error", () => other.destroy());
      socket.on("close", () => other.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get lostAnswers() {
      return lostAnswers;
    },
    close: async () => {
      server.close();
      await once(server, "close");
    },
  };
}
