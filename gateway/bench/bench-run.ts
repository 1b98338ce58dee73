/** A run of the bench: fresh, ours alone, and ended when its workload is over. */
import { randomUUID } from "node:crypto";
import { type BenchTarget, runPath } from "./bench-target.ts";
import { RunSpelling } from "./frame-decoder.ts";
import type { PublishedRun } from "./judge.ts";

export class BenchRun implements PublishedRun {
  readonly id: string;
  readonly spelling: RunSpelling;
  /** Request of its readers, one for all of them. */
  readonly request: Buffer;
  published = 0;
  readonly unconfirmed = new Set<number>();
  /** Events that wait until an earlier batch is answered, as JSON. */
  queue: string[] = [];
  isPublishing = false;

  /** A UUID, which a gateway takes whatever its `runIds`. */
  constructor(target: BenchTarget, position: string | null) {
    this.id = randomUUID();
    this.spelling = new RunSpelling(this.id);
    const head = [`GET ${runPath(target, this.id, "/events/stream")} HTTP/1.1`, `host: ${new URL(target.base).host}`];
    head.push("accept: text/event-stream");
    for (const [name, value] of Object.entries(target.headers)) head.push(`${name}: ${value}`);
    if (position !== null) head.push(`last-event-id: ${position}`);
    this.request = Buffer.from(`${head.join("\r\n")}\r\n\r\n`);
  }
}
