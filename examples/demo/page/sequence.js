/** Checks by the producer's own token indexes that no token was lost and none came twice. It trusts neither the gateway's ids nor its gaps. */
export class SequenceCheck {
  lost = 0;
  doubled = 0;
  #lastIndex = new Map();

  /** A generation starts: its first token must have index 0. Without this the first index that is seen is taken as it is. */
  begin(correlationId) {
    if (!this.#lastIndex.has(correlationId)) this.#lastIndex.set(correlationId, -1);
  }

  token(correlationId, index) {
    const last = this.#lastIndex.get(correlationId) ?? index - 1;
    if (index <= last) {
      this.doubled++;
      return;
    }
    this.lost += index - last - 1;
    this.#lastIndex.set(correlationId, index);
  }

  /** A generation is complete and had `total` tokens. */
  finish(correlationId, total) {
    const last = this.#lastIndex.get(correlationId);
    if (last !== undefined && last < total - 1) this.lost += total - 1 - last;
  }
}
