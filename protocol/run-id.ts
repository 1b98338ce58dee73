/** Names of runs, as they stand in a URL or an event. */

/** `uuid`: UUIDs alone, as ZenML's server has it; `any`: other names as well. */
export type RunIdMode = "any" | "uuid";

/**
 * The canonical form of a run id, or null when it is none. UUIDs come in any spelling that ZenML takes (upper case, without dashes,
 * `urn:uuid:…`, `{…}`) and leave in lower case with dashes; other names are `[A-Za-z0-9._-]{1,128}` and stay as they are.
 */
export function parseRunId(raw: string, mode: RunIdMode): string | null {
  if (raw.length === 36 && CANONICAL.test(raw)) return raw;
  // No spelling is shorter than the digits alone.
  const uuid = raw.length < 32 ? null : parseUuid(raw);
  if (uuid !== null) return uuid;
  return mode === "any" && NAME.test(raw) ? raw : null;
}

/** A UUID in any of those spellings as 8-4-4-4-12 lower-case digits, or null. */
export function parseUuid(raw: string): string | null {
  const match = SPELLINGS.exec(raw);
  if (match === null) return null;
  const digits = (match[1] ?? match[2] ?? match[3])!.replaceAll("-", "").toLowerCase();
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}

const CANONICAL = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const DIGITS = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}";
const SPELLINGS = new RegExp(`^(?:(${DIGITS})|urn:uuid:(${DIGITS})|\\{(${DIGITS})\\})$`, "i");
const NAME = /^[A-Za-z0-9._-]{1,128}$/;
