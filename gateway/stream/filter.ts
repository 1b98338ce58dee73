/** Which events a subscriber wants: OR within a field, AND across fields, exact and case-sensitive. */
export class Filter {
  /** Equal for equal filters, whatever the order of their values: subscribers with one key share every decision. */
  readonly key: string;
  readonly #kinds: ReadonlySet<string> | null;
  readonly #stepNames: ReadonlySet<string> | null;
  readonly #correlationIds: ReadonlySet<string> | null;

  constructor(kinds: readonly string[], stepNames: readonly string[], correlationIds: readonly string[]) {
    this.#kinds = setOf(kinds);
    this.#stepNames = setOf(stepNames);
    this.#correlationIds = setOf(correlationIds);
    const parts = [this.#kinds, this.#stepNames, this.#correlationIds].map((set) => (set === null ? null : [...set].sort()));
    this.key = parts.every((part) => part === null) ? "" : JSON.stringify(parts);
  }

  /** An event without a field never matches a filter on that field. */
  matches(event: { readonly kind: string; readonly stepName: string | null; readonly correlationId: string | null }): boolean {
    return (
      (this.#kinds === null || this.#kinds.has(event.kind)) &&
      (this.#stepNames === null || (event.stepName !== null && this.#stepNames.has(event.stepName))) &&
      (this.#correlationIds === null || (event.correlationId !== null && this.#correlationIds.has(event.correlationId)))
    );
  }
}

/** Lets every event through. */
export const EVERYTHING = new Filter([], [], []);

/** An empty list is no filter on that field. */
export function makeFilter(kinds: readonly string[], stepNames: readonly string[], correlationIds: readonly string[]): Filter {
  if (kinds.length + stepNames.length + correlationIds.length === 0) return EVERYTHING;
  return new Filter(kinds, stepNames, correlationIds);
}

function setOf(values: readonly string[]): ReadonlySet<string> | null {
  return values.length === 0 ? null : new Set(values);
}
