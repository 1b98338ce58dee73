/** One line that says how far it is, on a terminal; nothing elsewhere. */

const BAR = 24;
const EVERY_MS = 100;

export class ProgressBar {
  readonly #output: NodeJS.WriteStream;
  #shownAt = Number.NEGATIVE_INFINITY;
  #step = "";

  constructor(output: NodeJS.WriteStream) {
    this.#output = output;
  }

  /** `share` of the step, 0 to 1. */
  show(step: string, share: number): void {
    if (!this.#output.isTTY) return;
    const now = performance.now();
    if (step === this.#step && now - this.#shownAt < EVERY_MS) return;
    this.#shownAt = now;
    this.#step = step;
    const full = Math.round(Math.min(1, Math.max(0, share)) * BAR);
    const line = `[${"#".repeat(full)}${"-".repeat(BAR - full)}] ${`${Math.round(share * 100)}`.padStart(3)} %  ${step}`;
    this.#output.write(`\r\x1b[2K${line.slice(0, (this.#output.columns || 80) - 1)}`);
  }

  clear(): void {
    if (this.#output.isTTY && this.#step !== "") this.#output.write("\r\x1b[2K");
    this.#step = "";
  }
}
