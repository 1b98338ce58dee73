/** Gathers the answers of several commands. */
import type { ReplyHandler } from "./connection.ts";
import type { Reply } from "./resp.ts";

export class Answers implements ReplyHandler {
  /** All of them, errors of Redis among them; rejects when the connection is lost before. */
  readonly all: Promise<Reply[]>;
  /** Those that have come. */
  readonly replies: Reply[] = [];
  readonly #expected: number;
  #resolve!: (replies: Reply[]) => void;
  #reject!: (error: Error) => void;

  constructor(expected: number) {
    this.#expected = expected;
    this.all = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  onReply(reply: Reply): void {
    this.replies.push(reply);
    if (this.replies.length === this.#expected) this.#resolve(this.replies);
  }

  onLost(error: Error): void {
    this.#reject(error);
  }
}
