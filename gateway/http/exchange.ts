/** One request and its one answer. Beside `SseSink`, the only caller of a response of uWebSockets.js. */
import type { BrokerLog } from "../broker/broker.ts";
import type { RequestError } from "../errors.ts";
import { later } from "../later.ts";
import { type Answer, errorAnswer, internalError, statusLine } from "./answer.ts";
import { Body } from "./body.ts";
import { type ByteBudget, BytesBusyError } from "./byte-budget.ts";
import type { Cors } from "./cors.ts";
import type { EngineApp, HttpResponse } from "./engine.ts";
import { LongAnswer } from "./long-answer.ts";
import { announcesBody, fieldOf, type RequestHead } from "./request-head.ts";
import { MAX_CORK_BYTES } from "./sse-sink.ts";

/** What all requests share. */
export interface ExchangeContext {
  readonly app: EngineApp;
  readonly cors: Cors;
  /** For the bodies of requests. */
  readonly budget: ByteBudget;
  readonly maxBodyBytes: number;
  /** For long answers. */
  readonly answerBudget: ByteBudget;
  readonly log: BrokerLog;
  /** True while the gateway drains: every answer closes its connection. */
  isDraining(): boolean;
  /** Requests that are still to be answered; counted here. */
  openExchanges: number;
}

/** The last byte of a body must be there so long after the head. */
export const BODY_DEADLINE_MS = 12_000;
/** For how long a connection may be idle behind an answer. More than the idle limits of common proxies, which else race with ours. */
const KEEP_ALIVE_SECONDS = 75;
/** So much goes out in one cork with its head, which is never larger than what is left. */
const SHORT_BODY_BYTES = MAX_CORK_BYTES - 2_000;
/** A body of which no byte comes for so long is one whose sender waits for the answer. */
const LINGER_MS = 500;

/** An answer that waits for the end of the request's body. */
interface Lingering {
  readonly answer: Answer;
  readonly timer: NodeJS.Timeout;
  seenBytes: number;
}

export class Exchange {
  readonly head: RequestHead;
  /** Null when the head announces none. */
  readonly body: Body | null;
  readonly #context: ExchangeContext;
  /** Null once the response may not be touched: the client left, it was answered, or a stream took it over. */
  #res: HttpResponse | null;
  #hasBegun = false;
  #deadline: NodeJS.Timeout | null = null;
  #lingering: Lingering | null = null;
  #paused = false;

  /** To be made inside the engine's callback, which hands over the body only to those who ask there and then. */
  constructor(res: HttpResponse, head: RequestHead, context: ExchangeContext) {
    this.head = head;
    this.#context = context;
    this.#res = res;
    context.openExchanges++;
    res.onAborted(() => this.#aborted());
    if (!announcesBody(head)) {
      this.body = null;
      return;
    }
    const body = new Body(context.budget, context.maxBodyBytes);
    this.body = body;
    res.onData((piece, isLast) => {
      // Not at once: bytes behind the body may show in this same call that the request was not what it seemed.
      if (body.push(piece, isLast) && this.#hasBegun) later(bodyDecided, this);
    });
  }

  /** True when nobody waits for an answer any more. */
  get isOver(): boolean {
    return this.#res === null;
  }

  /** To be called once, outside the engine's callback, before the request is looked at. */
  begin(): void {
    this.#hasBegun = true;
    const { body } = this;
    if (this.#res === null || body === null) return;
    if (body.isDecided) body.settle();
    if (!body.complete) this.#deadline = setTimeout(() => this.#tooLate(), BODY_DEADLINE_MS);
  }

  /** Leaves what comes of the body in the kernel, while it is not known whether the caller may send one. */
  pauseBody(): void {
    if (this.#res === null || this.body === null || this.body.complete) return;
    this.#paused = true;
    this.#res.pause();
  }

  resumeBody(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#res?.resume();
  }

  /**
   * Answers, unless the client has left. While a body is still coming the answer waits for its end: a client that sends first and reads
   * later would lose it with the connection. When no byte of it comes any more, the answer goes out and closes the connection.
   */
  answer(answer: Answer): void {
    if (this.#res === null || this.#lingering !== null) return;
    this.resumeBody();
    this.body?.discard();
    if (this.body === null || this.body.complete || answer.close === true) {
      this.#send(answer);
      return;
    }
    const lingering: Lingering = {
      answer,
      seenBytes: this.body.receivedBytes,
      timer: setInterval(() => this.#linger(), LINGER_MS),
    };
    this.#lingering = lingering;
  }

  /** Answers what an error says, or 500 for one that says nothing to clients, which is logged. */
  fail(error: unknown): void {
    const answer = errorAnswer(error);
    if (answer === null) {
      const text = error instanceof Error ? error.stack : String(error);
      this.#context.log.error({ method: this.head.method, error: text }, "a request failed by a fault of the gateway");
    }
    this.answer(answer ?? internalError());
  }

  /** Answers and closes the connection, whatever is behind the request: its end is in doubt. */
  refuse(error: RequestError): void {
    const answer = errorAnswer(error)!;
    this.answer({ ...answer, close: true });
  }

  /** Hands the response to a stream; null when the client has left. */
  takeOver(): HttpResponse | null {
    const res = this.#res;
    this.#finish();
    return res;
  }

  #send(answer: Answer): void {
    const res = this.#res!;
    const { app } = this.#context;
    const isWhole = this.body === null || this.body.complete;
    // The engine takes chunk sizes that others read otherwise (" 40" is 0 to it): what follows chunks may be what a proxy took for data.
    const endIsSure = isWhole && this.head.fields["transfer-encoding"] === null;
    const close = answer.close === true || this.#context.isDraining() || !endIsSure;
    this.#finish();
    app.setResponseTimeout(KEEP_ALIVE_SECONDS);
    if (answer.body === null) this.#sendBodiless(res, answer, close, isWhole);
    else this.#sendBody(res, answer, answer.body, close);
    app.setResponseTimeout(0);
  }

  /** The engine can end without a length, or close; not both. */
  #sendBodiless(res: HttpResponse, answer: Answer, close: boolean, isWhole: boolean): void {
    if (!isWhole) {
      res.close();
      return;
    }
    res.cork(() => {
      this.#writeHead(res, answer, close);
      res.endWithoutBody();
    });
  }

  #sendBody(res: HttpResponse, answer: Answer, content: string | Uint8Array, close: boolean): void {
    const body = typeof content === "string" ? Buffer.from(content) : content;
    if (this.head.method === "HEAD" || body.length <= SHORT_BODY_BYTES) {
      res.cork(() => {
        this.#writeHead(res, answer, false);
        if (this.head.method === "HEAD") res.endWithoutBody(body.length, close);
        else res.end(body, close);
      });
    } else {
      this.#sendLongBody(res, answer, body, close);
    }
  }

  /** Clients that ask for much and read nothing must not fill the memory. */
  #sendLongBody(res: HttpResponse, answer: Answer, body: Uint8Array, close: boolean): void {
    const { app, answerBudget } = this.#context;
    if (!answerBudget.take(body.length)) {
      const busy = errorAnswer(new BytesBusyError())!;
      this.#sendBody(res, busy, busy.body!, close);
      return;
    }
    res.cork(() => {
      this.#writeHead(res, answer, close);
      res.write(body.subarray(0, SHORT_BODY_BYTES));
    });
    const rest = body.subarray(SHORT_BODY_BYTES);
    new LongAnswer(res, rest, app, KEEP_ALIVE_SECONDS, () => answerBudget.give(body.length)).send();
  }

  #writeHead(res: HttpResponse, answer: Answer, close: boolean): void {
    res.writeStatus(statusLine(answer.status));
    for (const [name, value] of answer.headers) res.writeHeader(name, value);
    for (const [name, value] of this.#context.cors.headersFor(fieldOf(this.head, "origin"))) res.writeHeader(name, value);
    // Where the engine cannot close by itself, the client does.
    if (close) res.writeHeader("connection", "close");
  }

  #linger(): void {
    const { answer, seenBytes } = this.#lingering!;
    if (this.body!.receivedBytes === seenBytes) this.#send(answer);
    else this.#lingering!.seenBytes = this.body!.receivedBytes;
  }

  /** The body is whole, or is none that can be taken. Not inside the engine's callback. */
  bodyDecided(): void {
    if (this.#res === null) return;
    if (this.#lingering === null) this.body!.settle();
    else if (this.body!.complete) this.#send(this.#lingering.answer);
  }

  /** Closes, with the answer that waits for the body when there is one. */
  #tooLate(): void {
    const res = this.#res;
    if (res === null || this.body!.complete) return;
    if (this.#lingering !== null) {
      this.#send(this.#lingering.answer);
      return;
    }
    this.#finish();
    res.close();
  }

  #aborted(): void {
    this.#finish();
  }

  #finish(): void {
    if (this.#res !== null) this.#context.openExchanges--;
    this.#res = null;
    this.body?.discard();
    if (this.#deadline !== null) clearTimeout(this.#deadline);
    if (this.#lingering !== null) clearInterval(this.#lingering.timer);
  }
}

function bodyDecided(exchange: Exchange): void {
  exchange.bodyDecided();
}
