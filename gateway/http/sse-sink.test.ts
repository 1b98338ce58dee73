/** The law of uWebSockets.js (docs/architecture.md), clauses 1 to 5 and 9: one test a clause, on a real server and real sockets. */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OpenedStream, startTestServer, type TestServer } from "../../test/support/http-server.ts";
import { decodeChunked, headerOf, RawConnection, sendRaw } from "../../test/support/raw-http.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { MAX_CORK_BYTES } from "./sse-sink.ts";

const REQUEST = "GET /api/v1/runs/r/events/stream HTTP/1.1\r\nHost: gateway.test\r\n\r\n";

let gateway: TestServer;

beforeAll(async () => {
  gateway = await startTestServer({ settings: { stallSeconds: 1 } });
});
afterAll(() => gateway.close());

async function open(): Promise<{ connection: RawConnection; stream: OpenedStream }> {
  const index = gateway.streams.opened.length;
  const connection = await sendRaw(gateway.port, REQUEST);
  const stream = await gateway.streams.stream(index);
  await connection.untilText(": ok\n");
  return { connection, stream };
}

/** A client that reads nothing until told, with how its bytes arrived. */
class PausedClient {
  readonly socket: Socket;
  received = 0;
  #chunks: Buffer[] = [];
  closed = false;

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1" });
    this.socket.pause();
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.closed = true;
    });
    this.socket.on("data", (chunk: Buffer) => {
      this.received += chunk.length;
      this.#chunks.push(chunk);
    });
    this.socket.write(REQUEST);
  }

  get body(): Buffer {
    const bytes = Buffer.concat(this.#chunks);
    return Buffer.concat(decodeChunked(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4)).chunks);
  }

  /** The body without the opening lines and the comment lines that end batches. */
  get frames(): Buffer {
    const text = this.body.toString("latin1").replace(/^retry: \d+\n: ok\n/, "");
    return Buffer.from(text.replaceAll(/^:\n/gm, ""), "latin1");
  }
}

async function openPaused(): Promise<{ client: PausedClient; stream: OpenedStream }> {
  const index = gateway.streams.opened.length;
  const client = new PausedClient(gateway.port);
  return { client, stream: await gateway.streams.stream(index) };
}

/** Writes frames until the sink says stop. Gives all that was written. */
function fill(stream: OpenedStream, frameBytes = 15_000): Buffer[] {
  const written: Buffer[] = [];
  for (let n = 0; n < 5_000; n++) {
    const frame = frameOf(n, frameBytes);
    written.push(frame);
    if (!stream.sink.write(frame)) return written;
  }
  throw new Error("the socket takes everything");
}

function frameOf(n: number, bytes: number): Buffer {
  const head = `id: 1-${n}\nevent: x\ndata: `;
  return Buffer.from(`${head}${"x".repeat(bytes - head.length - 2)}\n\n`);
}

function arrivals(connection: RawConnection): Buffer[] {
  const pieces: Buffer[] = [];
  connection.socket.on("data", (piece: Buffer) => pieces.push(piece));
  return pieces;
}

describe("a stream's bytes", () => {
  test("law 2: head and first bytes come in one write, with the fields that keep proxies from holding events back", async () => {
    const connection = await RawConnection.open(gateway.port);
    const pieces = arrivals(connection);
    await connection.send(REQUEST);
    await connection.untilText(": ok\n");
    const response = await connection.head();
    expect(response.status).toBe(200);
    expect(headerOf(response, "content-type")).toBe("text/event-stream; charset=utf-8");
    expect(headerOf(response, "cache-control")).toBe("no-cache, no-store, no-transform");
    expect(headerOf(response, "x-accel-buffering")).toBe("no");
    expect(headerOf(response, "transfer-encoding")).toBe("chunked");
    expect(pieces).toHaveLength(1);
    const [, retry] = /^retry: (\d+)\n: ok\n:\n$/.exec(connection.body.toString())!;
    expect(Number(retry)).toBeGreaterThanOrEqual(1_000);
    expect(Number(retry)).toBeLessThan(2_000);
    connection.close();
  });

  test("law 1 and 2: a fan-out outside the engine's callbacks sends each subscriber its batch in one write", async () => {
    const clients: Awaited<ReturnType<typeof open>>[] = [];
    for (let n = 0; n < 20; n++) clients.push(await open());
    const pieces = clients.map(({ connection }) => arrivals(connection));
    await new Promise<void>((resolve) =>
      setImmediate(() => {
        for (const { stream } of clients) stream.sink.write(Buffer.from("id: 1-1\nevent: x\ndata: {}\n\n"));
        resolve();
      }),
    );
    await Promise.all(clients.map(({ connection }) => connection.untilText("data: {}\n\n")));
    expect(pieces.map((one) => one.length)).toEqual(clients.map(() => 1));
    for (const { connection } of clients) connection.close();
  });

  test("law 3: a comment chunk ends each batch, so that a client that waits for a chunk's end has it", async () => {
    const { connection, stream } = await open();
    stream.sink.write(Buffer.from("id: 1-1\nevent: x\ndata: {}\n\n"));
    await connection.untilText("data: {}\n\n");
    // The engine ends this chunk's CRLF with the chunk behind it.
    await connection.untilText("data: {}\n\n\r\n2\r\n:\n");
    connection.close();
  });

  test("law 2: a frame larger than a cork goes in pieces that fit one, with nothing between them", async () => {
    const { connection, stream } = await open();
    const opening = connection.body.length;
    const frame = frameOf(1, 69_632);
    stream.sink.write(frame);
    await connection.untilEvents(1);
    await connection.until((one) => one.body.length >= opening + frame.length + 2);
    expect(connection.body.subarray(opening).equals(Buffer.concat([frame, Buffer.from(":\n")]))).toBe(true);
    const response = await connection.head();
    for (const chunk of response.chunks) expect(chunk.length).toBeLessThanOrEqual(MAX_CORK_BYTES);
    connection.close();
  });
});

describe("a full socket", () => {
  test("law 2 and 4: false means sent, now stop: all that was written arrives, and drained is called once", async () => {
    const { client, stream } = await openPaused();
    const written = Buffer.concat(fill(stream, 69_632));
    expect(stream.drained).toBe(0);
    client.socket.resume();
    await waitFor("drained", () => stream.drained === 1);
    // Nothing else is written: without the empty cork in onWritable the tail would stay where it is.
    await waitFor("all that was written, to its tail", () => client.frames.equals(written));
    expect(stream.sink.write(Buffer.from(": more\n\n"))).toBe(true);
    await waitFor("what was written after the drain", () => client.body.includes(": more\n\n"));
    client.socket.destroy();
  });

  test("law 4: what the engine keeps back of a write that it took arrives without another write", async () => {
    const first = await openPaused();
    const enough = fill(first.stream).length - 1;
    first.client.socket.destroy();
    // One write less than the one that is told to stop: the last of these went into the engine's own buffer, and nobody was told.
    const { client, stream } = await openPaused();
    const written: Buffer[] = [];
    for (let n = 0; n < enough; n++) {
      written.push(frameOf(n, 15_000));
      stream.sink.write(written[n]!);
    }
    client.socket.resume();
    await waitFor("all that was written", () => client.frames.equals(Buffer.concat(written)));
    expect(stream.drained).toBe(0);
    client.socket.destroy();
  });

  test("law 4: drained means empty: while a reader takes a little at a time, its owner hears of progress only", async () => {
    const first = await openPaused();
    const kernelBytes = Buffer.concat(fill(first.stream)).length;
    first.client.socket.destroy();
    const { client, stream } = await openPaused();
    // Far more than the kernel takes, so that most of it is kept back by the engine.
    const written = kernelBytes * 4;
    expect(stream.sink.write(frameOf(0, written))).toBe(false);
    let missingAtDrain = -1;
    stream.onDrained = () => {
      missingAtDrain = written - client.received;
    };
    for (let step = 1; stream.drained === 0; step++) {
      client.socket.resume();
      await waitFor("some bytes", () => client.received >= Math.min(written, step * 200_000));
      client.socket.pause();
    }
    expect(stream.progressed).toBeGreaterThan(0);
    expect(missingAtDrain).toBeLessThan(kernelBytes + 64_000);
    client.socket.destroy();
    await waitFor("closed", () => stream.closed === 1);
  });

  test("law 9: a stalled reader's stream is cut only when its owner says so, and then at once", async () => {
    const { client, stream } = await openPaused();
    fill(stream);
    stream.sink.abort();
    expect(stream.sink.write(Buffer.from(": x\n\n"))).toBe(false);
    stream.sink.end(null);
    client.socket.resume();
    await waitFor("the connection is gone", () => client.closed);
    expect(client.body.toString()).not.toContain("\n0\r\n");
    expect(stream.closed).toBe(0);
  });
});

describe("the end of a stream", () => {
  test("law 5: ends the body cleanly behind the last frame, and the connection serves the next request", async () => {
    const { connection, stream } = await open();
    stream.sink.end(Buffer.from("event: end\ndata: {}\n\n"));
    const response = await connection.response();
    expect(response.complete).toBe(true);
    expect(connection.events).toEqual([{ event: "end", data: "{}", id: "" }]);
    expect(response.body.toString()).not.toContain("Connection");
    await connection.send("GET /api/v1/info HTTP/1.1\r\nHost: gateway.test\r\n\r\n");
    const [, second] = await connection.responses(2);
    expect(second!.status).toBe(200);
    // Given back once, by the owner: the sink does not call it closed as well.
    expect(stream.closed).toBe(0);
    connection.close();
  });

  test("law 5: a last frame larger than a cork arrives whole", async () => {
    const { connection, stream } = await open();
    const last = frameOf(1, 50_000);
    stream.sink.end(last);
    const response = await connection.response();
    expect(response.body.includes(last)).toBe(true);
    connection.close();
  });

  test("law 5: a client that leaves is told once, and nothing touches its response any more", async () => {
    const { connection, stream } = await open();
    connection.close();
    await waitFor("closed", () => stream.closed === 1);
    expect(stream.sink.write(Buffer.from(": x\n\n"))).toBe(false);
    stream.sink.end(Buffer.from(": x\n\n"));
    stream.sink.abort();
    expect(stream.closed).toBe(1);
  });

  test("law 9: an end behind a full socket waits for a reader that reads, and loses nothing", async () => {
    const { client, stream } = await openPaused();
    const written = Buffer.concat(fill(stream));
    stream.sink.end(Buffer.from("event: end\ndata: {}\n\n"));
    client.socket.resume();
    await waitFor("the end", () => client.body.includes("event: end\ndata: {}\n\n"));
    expect(client.frames.subarray(0, written.length).equals(written)).toBe(true);
    expect(stream.drained).toBe(0);
    client.socket.destroy();
  });

  test("law 9: an end behind a full socket that stays full is cut after stallSeconds", async () => {
    const { client, stream } = await openPaused();
    fill(stream);
    const { connections } = gateway.server;
    stream.sink.end(Buffer.from("event: end\ndata: {}\n\n"));
    await waitFor("the connection is given up", () => gateway.server.connections < connections);
    client.socket.destroy();
  });

  test("law 9: and sooner where its owner cannot wait so long", async () => {
    const patient = await startTestServer({ settings: { stallSeconds: 60 } });
    const client = new PausedClient(patient.port);
    const stream = await patient.streams.stream(0);
    fill(stream);
    stream.sink.end(Buffer.from("event: end\ndata: {}\n\n"), 50);
    await waitFor("the connection is given up", () => patient.server.connections === 0);
    client.socket.destroy();
    await patient.close();
  });
});
