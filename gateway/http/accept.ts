/** Content negotiation by RFC 9110 12.5.1, for the one type that a route can give. */

/**
 * True when `accept` allows a type such as `text/event-stream`. No header, or an empty one, allows everything. The most specific range
 * decides: a type refused by `q=0` stays refused where a wildcard behind it would take it.
 */
export function accepts(accept: string | null, type: string): boolean {
  // What EventSource sends, and most clients by default.
  if (accept === null || accept === type || accept === "*/*" || accept.trim() === "") return true;
  const main = type.slice(0, type.indexOf("/"));
  let specificity = 0;
  let allowed = false;
  for (const part of accept.split(",")) {
    const [range = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const rank = range === type ? 3 : range === `${main}/*` ? 2 : range === "*/*" || range === "*" ? 1 : 0;
    if (rank === 0 || rank < specificity) continue;
    const willing = weightOf(parameters) > 0;
    // Of two ranges alike, one that allows it is enough.
    allowed = rank === specificity ? allowed || willing : willing;
    specificity = rank;
  }
  return allowed;
}

/** Lenient: some clients write `q=.2`. */
function weightOf(parameters: readonly string[]): number {
  for (const parameter of parameters) {
    const match = /^q\s*=\s*(.*)$/.exec(parameter);
    if (match === null) continue;
    const weight = Number(match[1]);
    return Number.isNaN(weight) ? 1 : weight;
  }
  return 1;
}
