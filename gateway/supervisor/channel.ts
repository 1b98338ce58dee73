/** One end of the IPC channel between supervisor and worker, with a bound: who does not read costs the other neither memory nor time. */

/** `process` in a worker, the `ChildProcess` in the supervisor. */
export interface IpcEnd {
  send?(message: object, handle: undefined, options: object, callback: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  readonly connected?: boolean;
}

/** Messages that may wait for the other side. They are small, but for snapshots, which come only when they are asked for. */
const MAX_WAITING = 1_024;

export class Channel<Out extends object, In> {
  readonly #end: IpcEnd;
  #waiting = 0;

  constructor(end: IpcEnd, received: (message: In) => void) {
    this.#end = end;
    end.on("message", (message) => received(message as In));
  }

  /** False when the message was not taken: the other side is gone, or has not read for long. */
  send(message: Out): boolean {
    if (this.#waiting >= MAX_WAITING || this.#end.connected !== true) return false;
    this.#waiting++;
    // With a callback, a channel that breaks meanwhile is no `error` event; that the other side is gone is told by its exit.
    this.#end.send!(message, undefined, {}, () => {
      this.#waiting--;
    });
    return true;
  }
}
