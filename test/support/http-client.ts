/** Requests by bytes, for tests that look at one answer. */
import { type RawResponse, sendRaw } from "./raw-http.ts";

export interface SentRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
}

/** Sends one request on a connection of its own and gives the whole answer. Throws when the server closes without one. */
export async function ask(port: number, request: SentRequest): Promise<RawResponse> {
  const { method = "GET", path, headers = {}, body } = request;
  const lines = [`${method} ${path} HTTP/1.1`, "Host: gateway.test"];
  for (const [name, values] of Object.entries(headers)) for (const value of [values].flat()) lines.push(`${name}: ${value}`);
  const bytes = body === undefined ? null : Buffer.from(body as string);
  if (bytes !== null) lines.push(`Content-Length: ${bytes.length}`);
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  const connection = await sendRaw(port, bytes === null ? head : Buffer.concat([head, bytes]));
  try {
    return await connection.response({ head: method === "HEAD" });
  } finally {
    connection.close();
  }
}

export function jsonOf(response: RawResponse): Record<string, unknown> {
  return JSON.parse(response.body.toString()) as Record<string, unknown>;
}
