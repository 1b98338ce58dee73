/** Which tokens of the demo's run a filter lets through. The filtering itself is the gateway's. */

/** The steps that write tokens, and how the correlation ids of their events begin. */
const WRITERS = { generate: "answer-", suggest: "follow-up-" };

/** True when a filter, as the query that the gateway gets, holds back every token of a step. */
export function hidesTokensOf(step, query) {
  const allows = (name, matches) => !query.has(name) || query.getAll(name).some(matches);
  const isAllowed =
    allows("kinds", (kind) => kind === "token") &&
    allows("step_names", (name) => name === step) &&
    allows("correlation_ids", (id) => id.startsWith(WRITERS[step]));
  return !isAllowed;
}

/** True when no token at all comes through: then there is nothing to check. */
export function hidesAllTokens(query) {
  return Object.keys(WRITERS).every((step) => hidesTokensOf(step, query));
}
