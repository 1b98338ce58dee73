import { describe, expect, it } from "vitest";
import { createLog } from "./log.ts";
import { prettyLine } from "./pretty-line.ts";

function logged(level: "info" | "warn"): { lines: string[]; log: ReturnType<typeof createLog> } {
  const lines: string[] = [];
  return { lines, log: createLog({ level, format: "json" }, { to: { write: (line) => void lines.push(line) } }) };
}

describe("the log", () => {
  it("is one JSON line an occurrence", () => {
    const { lines, log } = logged("info");
    log.info({ port: 8080 }, "listening\nstill one line");
    expect(lines).toHaveLength(1);
    expect(lines[0]?.match(/\n/g)).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      port: 8080,
      msg: "listening\nstill one line",
    });
  });

  it("leaves out what is below its level", () => {
    const { lines, log } = logged("warn");
    log.info({}, "quiet");
    log.warn({}, "loud");
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["loud"]);
  });

  it("never shows a token, a password or a payload, even if it were handed one", () => {
    const { lines, log } = logged("info");
    log.info(
      { authorization: "Bearer hush", token: "hush", password: "hush", payload: { text: "hush" }, cookie: "hush" },
      "oops",
    );
    expect(lines[0]).not.toContain("hush");
  });

  it("can be text for people", () => {
    const { lines, log } = logged("info");
    log.info({ port: 8080, host: "127.0.0.1", list: [1] }, "listening");
    expect(prettyLine(lines[0]!).replace(/\u001b\[\d+m/g, "")).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} INFO {2}listening port=8080 host=127\.0\.0\.1 list=\[1\]\n$/,
    );
  });
});
