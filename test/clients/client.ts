/** The foreign clients that the gateway is tried with, each as its users run it. */

import { fileURLToPath } from "node:url";
import { EventSource } from "eventsource";
import { createParser } from "eventsource-parser";
import { LineProcess } from "../support/line-process.ts";
import { clientPython } from "../support/python.ts";
import { waitFor } from "../support/wait-for.ts";

export interface Heard {
  readonly event: string;
  readonly data: string;
  readonly id: string;
}

export interface RunningClient {
  /** Everything that the client handed to its user, in order. */
  readonly heard: readonly Heard[];
  untilHeard(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface ForeignClient {
  readonly name: string;
  /** True for a client that is known to make an empty event of a heartbeat (docs/clients.md). */
  readonly hearsHeartbeats: boolean;
  open(url: string): Promise<RunningClient>;
}

/** Event names that the tests publish or expect; an EventSource must be told each. */
const NAMES = ["token", "message", "end", "gap", "cursor"];

export const FOREIGN_CLIENTS: readonly ForeignClient[] = [
  { name: "Python requests", hearsHeartbeats: false, open: (url) => openPython("requests_client.py", url) },
  { name: "httpx-sse", hearsHeartbeats: true, open: (url) => openPython("httpx_sse_client.py", url) },
  { name: "sseclient-py", hearsHeartbeats: false, open: (url) => openPython("sseclient_py_client.py", url) },
  { name: "eventsource", hearsHeartbeats: false, open: openEventSource },
  { name: "eventsource-parser with fetch", hearsHeartbeats: false, open: openParser },
  { name: "curl", hearsHeartbeats: false, open: openCurl },
];

async function openPython(script: string, url: string): Promise<RunningClient> {
  const python = await clientPython();
  if (python === null) throw new Error("needs python3 of 3.10 or later with venv");
  const client = new LineProcess<Heard>(python, [fileURLToPath(new URL(script, import.meta.url)), url]);
  return {
    heard: client.values,
    untilHeard: async (count) => {
      await client.untilCount(count);
    },
    close: () => client.stop(),
  };
}

async function openEventSource(url: string): Promise<RunningClient> {
  const heard: Heard[] = [];
  const source = new EventSource(url);
  for (const name of NAMES) {
    source.addEventListener(name, ({ data, lastEventId }) => {
      heard.push({ event: name, data: String(data), id: lastEventId });
      // As docs/clients.md tells its users.
      if (name === "end") source.close();
    });
  }
  return {
    heard,
    untilHeard: (count) => untilLength(heard, count),
    close: async () => source.close(),
  };
}

async function openParser(url: string): Promise<RunningClient> {
  const heard: Heard[] = [];
  const abort = new AbortController();
  const response = await fetch(url, { headers: { accept: "text/event-stream" }, signal: abort.signal });
  const parser = createParser({
    onEvent: ({ event, data, id }) => heard.push({ event: event ?? "message", data, id: id ?? "" }),
  });
  const done = (async () => {
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) parser.feed(text);
  })().catch((error: unknown) => {
    if (!abort.signal.aborted) throw error;
  });
  return {
    heard,
    untilHeard: (count) => untilLength(heard, count),
    close: async () => {
      abort.abort();
      await done;
    },
  };
}

/** curl hands lines to its user; a block of them is an event when it has data. */
async function openCurl(url: string): Promise<RunningClient> {
  const heard: Heard[] = [];
  let fields: Record<string, string> = {};
  const client = new LineProcess<string>("curl", ["-sSN", "--fail", "-H", "Accept: text/event-stream", url], (line) => {
    if (line === "") {
      if (fields["data"] !== undefined) {
        heard.push({ event: fields["event"] ?? "message", data: fields["data"], id: fields["id"] ?? "" });
      }
      fields = {};
    } else if (!line.startsWith(":")) {
      const colon = line.indexOf(": ");
      fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    return line;
  });
  return {
    heard,
    untilHeard: (count) => untilLength(heard, count),
    close: () => client.stop(),
  };
}

async function untilLength(heard: readonly Heard[], count: number): Promise<void> {
  await waitFor(`${count} events, got ${heard.length}`, () => heard.length >= count);
}
