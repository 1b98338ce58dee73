import { defineConfig } from "vitest/config";

const soak = process.env["PENSTOCK_SOAK"] === "1";

export default defineConfig({
  test: {
    include: soak
      ? ["test/soak/**/*.test.ts"]
      : ["gateway/**/*.test.ts", "protocol/**/*.test.ts", "scripts/**/*.test.ts", "examples/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["**/node_modules/**", ...(soak ? [] : ["test/soak/**"])],
    pool: "forks",
    // Servers, browsers and Python run beside the tests; more at once would only wait for one another.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    env: { UWS_HTTP_MAX_HEADERS_SIZE: "16384" },
  },
});
