import { expect, test } from "vitest";
import { parseRunId } from "./run-id.ts";

const UUID = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

test.each([
  UUID,
  UUID.toUpperCase(),
  UUID.replaceAll("-", ""),
  `urn:uuid:${UUID}`,
  `URN:UUID:${UUID.toUpperCase()}`,
  `{${UUID}}`,
])("the UUID %s names the same run", (raw) => {
  expect(parseRunId(raw, "uuid")).toBe(UUID);
  expect(parseRunId(raw, "any")).toBe(UUID);
});

test.each(["nightly-7", "A.b_c", "x", "9".repeat(128)])("the name %s is a run unless only UUIDs are", (raw) => {
  expect(parseRunId(raw, "any")).toBe(raw);
  expect(parseRunId(raw, "uuid")).toBeNull();
});

test.each(["", "a b", "a/b", "a:b", "ü", "x\n", "9".repeat(129), `{${UUID}`, `${UUID}}`, `urn:uuid:{${UUID}}`])(
  "%j is no run",
  (raw) => {
    expect(parseRunId(raw, "any")).toBeNull();
    expect(parseRunId(raw, "uuid")).toBeNull();
  },
);
