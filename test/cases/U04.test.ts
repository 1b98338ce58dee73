/** U04: framing of a request's body. What two parties could read differently is refused, and the connection closed. */
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CASE_RUN, caseBytes, casePieces, type Stage, sendCase, startStage } from "../support/cases.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { fillTemplate, parseResponses, type RawConnection, type RawResponse, sendRaw } from "../support/raw-http.ts";

/** The case's limit for files that may be refused or closed. */
const LIMIT_MS = 15_000;
const TOKEN = "test-token";

describe("U04: framing", () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await startStage("memory");
  });
  afterAll(() => stage.stop());

  it.each([
    "cl-twice-different",
    "cl-and-te",
    "te-gzip-chunked",
    "te-space-colon",
    "te-identity",
    "cl-plus",
    "cl-list",
    "cl-minus",
    "cl-hex",
  ])("%s is refused, nothing stored, nothing behind it served", async (name) => {
    const before = await stage.entryCount(CASE_RUN);
    const connection = await sendCase(stage.gateway, `U04/${name}.http`);
    await connection.untilClosed(LIMIT_MS);
    const answers = answersOf(connection);
    // A close without an answer is right where bytes are pipelined behind the refused request.
    expect(answers.length).toBeLessThanOrEqual(1);
    for (const { status } of answers) expect([400, 501]).toContain(status);
    expect(await stage.entryCount(CASE_RUN)).toBe(before);
  });

  it.each(["te-chunked", "te-upper"])("%s works", async (name) => {
    const before = await stage.entryCount(CASE_RUN);
    const connection = await sendCase(stage.gateway, `U04/${name}.http`);
    const { status } = await connection.response();
    connection.close();
    expect(status).toBe(200);
    expect(await stage.entryCount(CASE_RUN)).toBe(before + 1);
  });

  it.each(["te-trailer", "chunk-ext", "cl-twice-same"])("%s works, or is refused or closed in time", async (name) => {
    const before = await stage.entryCount(CASE_RUN);
    const connection = await sendCase(stage.gateway, `U04/${name}.http`);
    await connection.until(
      () => connection.closed || answersOf(connection).some(({ complete }) => complete),
      LIMIT_MS,
      "an answer or a close",
    );
    const statuses = answersOf(connection).map(({ status }) => status);
    connection.close();
    expect(statuses.length).toBeLessThanOrEqual(1);
    expect([200, 400, 408, 501, 505, undefined]).toContain(statuses[0]);
    expect(await stage.entryCount(CASE_RUN)).toBe(before + (statuses[0] === 200 ? 1 : 0));
  });
});

describe("U04: a request behind one that is refused", () => {
  let gateway: Gateway;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "penstock-u04-"));
    const tokensFile = join(folder, "tokens.yaml");
    await writeFile(tokensFile, tokensYaml());
    gateway = await startGateway({ flags: ["--auth", "static"], config: { auth: { static: { tokensFile } } } });
  });
  afterAll(async () => {
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it("smuggle-after-error: each answer is a request's own", async () => {
    const connection = await sendRaw(gateway.port, casePieces("U04/smuggle-after-error.http", { TOKEN }));
    await settled(connection);
    const [first, second, ...more] = answersOf(connection);
    connection.close();
    if (first !== undefined) expect(first.status).toBe(400);
    if (second !== undefined) expect(second.status).toBe(200);
    expect(more).toEqual([]);
  });

  it("a second request without a token gets no stream", async () => {
    const bytes = caseBytes("U04/smuggle-after-error.http").toString("latin1");
    const at = bytes.lastIndexOf("Authorization: ");
    const bare = bytes.slice(0, at) + bytes.slice(bytes.indexOf("\r\n", at) + 2);
    const connection = await sendRaw(gateway.port, fillTemplate(Buffer.from(bare, "latin1"), { TOKEN }));
    await settled(connection);
    const statuses = answersOf(connection).map(({ status }) => status);
    connection.close();
    expect([[], [400], [400, 401]]).toContainEqual(statuses);
    expect((await gateway.metrics()).get("penstock_connections_opened_total")).toBeLessThanOrEqual(1);
  });
});

/** Closed, or two answers begun. */
async function settled(connection: RawConnection): Promise<void> {
  await connection.until(() => connection.closed || answersOf(connection).length >= 2, LIMIT_MS, "a close or two answers");
}

function answersOf(connection: RawConnection): RawResponse[] {
  return parseResponses(connection.bytes, { closed: connection.closed, head: false });
}

function tokensYaml(): string {
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  return `tokens:\n  - id: test\n    sha256: ${sha256}\n    rights: [read, publish]\n`;
}
