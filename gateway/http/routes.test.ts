import { expect, test } from "vitest";
import { createRouter } from "./routes.ts";

test.each([
  ["/api/v1/runs/r/events", { route: "events", rawRunId: "r" }],
  ["/api/v1/runs/r/events/", { route: "events", rawRunId: "r" }],
  ["/api/v1/runs/r/events/stream", { route: "stream", rawRunId: "r" }],
  ["/api/v1/runs/%7Bx%7D/end", { route: "end", rawRunId: "%7Bx%7D" }],
  ["/api/v1/runs/events/events", { route: "events", rawRunId: "events" }],
  ["/api/v1/info", { route: "info", rawRunId: "" }],
  ["/openapi.json", { route: "openapi", rawRunId: "" }],
])("%s, with a prefix and without", (path, match) => {
  expect(createRouter("")(path)).toEqual(match);
  expect(createRouter("/zenml")(`/zenml${path}`)).toEqual(match);
  expect(createRouter("/zenml")(path)).toBeNull();
});

test.each([
  "/",
  "/nope",
  "//api/v1/runs/r/events",
  "/api/v1/runs//events",
  "/api/v1/runs/r",
  "/api/v1/runs/r/",
  "/api/v1/runs/r/events//",
  "/api/v1/runs/r/events/stream/",
  "/api/v1/runs/r/s/events",
  "/api/v1/runs/r/Events",
  "/api/v1/info/",
  "/zenml",
])("nothing is at %s", (path) => {
  expect(createRouter("")(path)).toBeNull();
});
