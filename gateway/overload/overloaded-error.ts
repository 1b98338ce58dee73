import { RequestError } from "../errors.ts";

/** This worker takes no new streams for now. */
export class OverloadedError extends RequestError {
  /** By chance, so that those who were refused together do not come back together. */
  readonly retryAfterSeconds = 1 + Math.floor(Math.random() * 5);

  constructor() {
    super("PENSTOCK_OVERLOADED", 503, "This server has too much to do to take new streams; retry shortly.");
  }
}
