/** The readers that docs/clients.md shows, run as they stand there: with a token, through a connection that is cut again and again. */
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { LineProcess } from "../support/line-process.ts";
import { clientPython } from "../support/python.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TOKEN = "0123456789abcdef-reader-and-publisher";
const AUTHORIZATION = { authorization: `Bearer ${TOKEN}` };
const INSTALL_LIMIT_MS = 600_000;

const python = await clientPython();
let folder: string;
let page: string;
let gateway: Gateway;
let line: CuttableLine;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "penstock-examples-"));
  page = await readFile(join(ROOT, "docs/clients.md"), "utf8");
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const tokensFile = join(folder, "tokens.yaml");
  await writeFile(tokensFile, JSON.stringify({ tokens: [{ id: "test", token: TOKEN, rights: ["read", "publish"] }] }));
  gateway = await startGateway({ flags: ["--auth", "static", "--tokens-file", tokensFile] });
  line = await CuttableLine.to(gateway.port);
}, INSTALL_LIMIT_MS);

afterAll(async () => {
  line?.close();
  await gateway?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("the readers of docs/clients.md", () => {
  it("by fetch", async () => {
    await writeFile(join(folder, "follow.mjs"), exampleOf("JavaScript by fetch", "js"));
    const main = `import { follow } from "./follow.mjs";
      await follow(process.argv[2], process.argv[3], ({ event, data }) => console.log(event, data));`;
    await writeFile(join(folder, "main.mjs"), main);
    await readsThroughCuts("by-fetch", (url) => [process.execPath, [join(folder, "main.mjs"), url, TOKEN]]);
  });

  it.skipIf(python === null)("in Python (without one of 3.10 or later it is named at the end of npm test)", async () => {
    await readsThroughCuts("in-python", (url) => {
      const example = exampleOf("Python", "python")
        .replace(/^URL = .*$/m, `URL = "${url}"`)
        .replace("follow(URL):", `follow(URL, {"Authorization": "Bearer ${TOKEN}"}):`);
      return [python!, ["-u", "-c", example]];
    });
  });

  it("by npm's eventsource, with a fetch that sends the token", async () => {
    const example = page.slice(page.indexOf('import { EventSource } from "eventsource"'));
    const main = `${example.slice(0, example.indexOf("```"))}
      source.addEventListener("token", ({ data }) => console.log("token", data));
      const held = setInterval(() => {}, 1_000); // as the page says: its wait for a reconnect holds no program
      source.addEventListener("end", () => { source.close(); clearInterval(held); });`;
    await writeFile(join(folder, "source.mjs"), `const url = process.argv[2]; const token = () => process.argv[3];\n${main}`);
    await readsThroughCuts("by-eventsource", (url) => [process.execPath, [join(folder, "source.mjs"), url, TOKEN]]);
  });
});

/** Publishes, cuts, publishes while the reader is away, and so on; the reader prints each event once, and goes by itself at the end. */
async function readsThroughCuts(runId: string, command: (url: string) => [string, string[]]): Promise<void> {
  const reader = new LineProcess<number>(
    ...command(`http://127.0.0.1:${line.port}/api/v1/runs/${runId}/events/stream`),
    numberIn,
  );
  const wanted: number[] = [];
  for (let round = 0; round < 3; round++) {
    for (const when of ["live", "away"]) {
      wanted.push(wanted.length);
      const answer = await gateway.publish(
        runId,
        { events: [{ kind: "token", payload: { n: wanted.length - 1 } }] },
        AUTHORIZATION,
      );
      expect(answer.status).toBe(200);
      if (when === "away") continue;
      await reader.untilCount(wanted.length);
      line.cut();
    }
  }
  const ended = await fetch(gateway.runUrl(runId, "/end"), { method: "POST", headers: AUTHORIZATION });
  expect(ended.status).toBe(200);
  expect(await reader.untilExit()).toBe(0);
  expect(reader.values).toEqual(wanted);
  expect(reader.stderr).toBe("");
}

/** The number of an event in what a reader printed, JSON or Python. */
function numberIn(text: string): number | null {
  const found = /\bn['"]: ?(\d+)/.exec(text);
  return found === null ? null : Number(found[1]);
}

/** The first block of code below a heading of the page. */
function exampleOf(heading: string, language: string): string {
  const below = page.split(`### ${heading}\n`)[1]!;
  return below.split(`\`\`\`${language}\n`)[1]!.split("```")[0]!;
}

/** A way to the gateway that can be cut in the midst of a chunk. */
class CuttableLine {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async to(target: number): Promise<CuttableLine> {
    const server = createServer();
    const made = new CuttableLine(server);
    server.on("connection", (near) => {
      const far = connect(target, "127.0.0.1");
      for (const socket of [near, far]) {
        made.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => made.#sockets.delete(socket));
      }
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return made;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
