import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { filesWith } from "./test-files.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe("the test files that need Redis", () => {
  const files = filesWith(root, ["redis-servers", "-scenario.ts"]);

  it.each(["test/redis/loss.test.ts", "test/redis/rollback.test.ts", "test/cases/S01.test.ts"])(
    "have %s, which starts it itself or by a helper",
    (file) => {
      expect(files).toContain(file);
    },
  );

  it("have none that does without", () => {
    expect(files.filter((file) => file.startsWith("gateway/json/") || file.startsWith("test/stream/"))).toEqual([]);
  });
});
