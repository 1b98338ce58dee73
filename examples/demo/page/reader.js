/**
 * Reads an event stream with fetch, so that the page can send a Last-Event-ID of its choice and cut its own connection; EventSource can do
 * neither. Lines and fields as in WHATWG HTML 9.2.6.
 */

export class FrameDecoder {
  #rest = "";
  #data = [];
  #event = "";
  #id;
  /** When the server wants a reconnect, in milliseconds; null until it has said so. */
  retryMs = null;

  /** @param {string} lastEventId the position that the stream was opened with, "" for none */
  constructor(lastEventId) {
    this.#id = lastEventId;
  }

  /** Takes the next piece of the body, cut anywhere, and returns the frames that it completes. */
  push(text) {
    // A CR at the very end may be the first half of a CRLF: it waits for the next piece.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    const frames = [];
    for (const line of lines) {
      if (line !== "") this.#field(line);
      else this.#dispatch(frames);
    }
    return frames;
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.retryMs = Number(value);
  }

  #dispatch(frames) {
    if (this.#data.length > 0) frames.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
    this.#data = [];
    this.#event = "";
  }
}

/** The gateway answered with something other than a stream. */
export class AnswerError extends Error {
  constructor(status, detail) {
    super(`${status} ${detail}`);
    this.status = status;
  }
}

/**
 * Reads one stream to the end of its body and gives each frame to `onFrame`. Throws when the connection breaks, when `signal` aborts, and
 * AnswerError when there is no stream.
 */
export async function readStream(url, { lastEventId, signal, onOpen, onFrame, onRetry }) {
  const headers = { accept: "text/event-stream", ...(lastEventId ? { "last-event-id": lastEventId } : {}) };
  const response = await fetch(url, { headers, signal, cache: "no-store" });
  if (!response.ok) throw new AnswerError(response.status, await response.text());
  onOpen();
  const decoder = new FrameDecoder(lastEventId);
  const body = response.body.pipeThrough(new TextDecoderStream());
  for (let reader = body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const frame of decoder.push(value)) onFrame(frame);
    if (decoder.retryMs !== null) onRetry(decoder.retryMs);
  }
}
