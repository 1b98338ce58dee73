import { expect, test } from "vitest";
import { accepts } from "./accept.ts";

test.each([
  null,
  "",
  "*/*",
  "*",
  "text/*",
  "text/event-stream",
  "TEXT/EVENT-STREAM",
  "application/json, text/event-stream",
  "text/html;q=0.8, text/event-stream;q=0.9, */*;q=0.1",
  "text/event-stream; charset=utf-8",
  "text/html, image/gif, *; q=.2, */*; q=.2",
  "text/*;q=0, text/event-stream",
  "text/event-stream;q=0, text/event-stream;q=1",
])("%j accepts an event stream", (accept) => {
  expect(accepts(accept, "text/event-stream")).toBe(true);
});

test.each([
  "application/json",
  "text/event-stream;q=0, application/json",
  "text/event-stream;q=0, */*",
  "text/event-stream; Q=0.000, text/*",
  "text/*;q=0, */*",
  "*/*;q=0",
  ";;,,/",
  "text",
  "text/event-streams",
])("%j does not", (accept) => {
  expect(accepts(accept, "text/event-stream")).toBe(false);
});
