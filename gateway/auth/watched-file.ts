/**
 * A file that is read again when it changes. Looked at by `stat` on a timer: Kubernetes swaps a symlink two levels up when a Secret
 * changes, of which a file watch hears nothing.
 */
import { readFileSync, statSync } from "node:fs";
import { ConfigError } from "../errors.ts";
import type { Log } from "../supervisor/worker-handle.ts";

const INTERVAL_MS = 1_000;

export class WatchedFile<Value> {
  readonly #setting: string;
  readonly #path: string;
  readonly #parse: (text: string) => Value;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #value: Value;
  #seen: string;

  /**
   * `setting` names the file. Throws ConfigError when it cannot be read or parsed; later failures are logged, and the last good value
   * stays.
   */
  constructor(setting: string, path: string, parse: (text: string) => Value, log: Log) {
    this.#setting = setting;
    this.#path = path;
    this.#parse = parse;
    this.#log = log;
    this.#seen = this.#look();
    this.#value = this.#read();
    this.#timer = setInterval(() => this.#refresh(), INTERVAL_MS);
    this.#timer.unref();
  }

  get value(): Value {
    return this.#value;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #refresh(): void {
    const now = this.#look();
    if (now === this.#seen) return;
    this.#seen = now;
    try {
      this.#value = this.#read();
      this.#log.info({ file: this.#path }, "file read again");
    } catch (error) {
      this.#log.error(
        { file: this.#path, error: (error as Error).message },
        "changed file cannot be used; its last good state stays",
      );
    }
  }

  /** What changes when the file does. */
  #look(): string {
    try {
      const { mtimeNs, ctimeNs, ino, size } = statSync(this.#path, { bigint: true });
      return `${mtimeNs} ${ctimeNs} ${ino} ${size}`;
    } catch (error) {
      return String((error as NodeJS.ErrnoException).code);
    }
  }

  #read(): Value {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new ConfigError(`${this.#setting}: the file ${this.#path} cannot be read (${code}); correct its path or rights.`);
    }
    return this.#parse(text);
  }
}
