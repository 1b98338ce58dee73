import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { waitFor } from "../../test/support/wait-for.ts";
import { LogOutput } from "./log-output.ts";

const folder = mkdtempSync(join(tmpdir(), "penstock-log-"));
afterAll(() => rmSync(folder, { recursive: true }));

const asItIs = (line: string) => line;

function flushed(output: LogOutput): Promise<Error | undefined> {
  return new Promise((resolve) => output.flush(resolve));
}

/** Both ends of a pipe that blocks nobody. */
function pipe(name: string): { reader: number; writer: number } {
  const path = join(folder, name);
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reader, writer: openSync(path, constants.O_WRONLY | constants.O_NONBLOCK) };
}

describe("where the log goes", () => {
  it("gets every line, in order, in the shape that is wanted", async () => {
    const path = join(folder, "lines");
    const descriptor = openSync(path, "w");
    const output = new LogOutput(descriptor, (line) => line.toUpperCase());
    const lines = Array.from({ length: 5_000 }, (_, n) => `line ${n}\n`);
    for (const line of lines) output.write(line);
    expect(await flushed(output)).toBeUndefined();
    expect(readFileSync(path, "utf8")).toBe(lines.join("").toUpperCase());
    closeSync(descriptor);
  });

  it("may lose its reader: what comes then goes nowhere, and nobody waits for it", async () => {
    const { reader, writer } = pipe("gone");
    const output = new LogOutput(writer, asItIs);
    closeSync(reader);
    output.write("a\n");
    await waitFor("the loss is seen", () => flushed(output).then((error) => error === undefined));
    output.write("b\n");
    expect(await flushed(output)).toBeUndefined();
    closeSync(writer);
  });

  it("may have a reader that stops: what waits is bounded, and what was lost is told when it reads again", {
    timeout: 60_000,
  }, async () => {
    const { reader, writer } = pipe("slow");
    const output = new LogOutput(writer, asItIs);
    let lost = 0;
    output.lost = (lines) => {
      lost = lines;
    };
    const line = `${"x".repeat(99_999)}\n`;
    for (let n = 0; n < 60; n++) output.write(line);
    expect(await flushed(output)).toBeInstanceOf(Error);
    let received = 0;
    const piece = Buffer.alloc(1_000_000);
    await waitFor(
      "all that was kept",
      async () => {
        try {
          received += readSync(reader, piece);
        } catch {
          // Nothing there at the moment.
        }
        return lost > 0 && received >= (60 - lost) * line.length;
      },
      40_000,
    );
    expect(lost).toBeGreaterThan(10);
    expect(received).toBe((60 - lost) * line.length);
    closeSync(reader);
    closeSync(writer);
  });
});
