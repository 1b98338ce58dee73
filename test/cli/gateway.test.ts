/** The program as a whole: `penstock gateway`, and the commands that speak with it. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { Cli } from "./run-cli.ts";

const folder = mkdtempSync(join(tmpdir(), "penstock-cli-"));
const open: Cli[] = [];
afterEach(async () => {
  for (const cli of open.splice(0)) await cli.stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Started {
  readonly cli: Cli;
  readonly url: string;
  readonly adminUrl: string;
}

function penstock(args: readonly string[], env: Record<string, string> = {}): Cli {
  const cli = new Cli(args, env);
  open.push(cli);
  return cli;
}

async function start(flags: readonly string[], env: Record<string, string> = {}): Promise<Started> {
  const preset = { PENSTOCK_DRAIN_DELAY_SECONDS: "0", PENSTOCK_DRAIN_SECONDS: "2", ...env };
  const cli = penstock(["gateway", "--port", "0", "--admin-port", "0", ...flags], preset);
  await cli.untilStdout('"msg":"listening"');
  const { port, adminPort } = JSON.parse(cli.lines().find((line) => line.includes('"msg":"listening"'))!);
  return { cli, url: `http://127.0.0.1:${port}`, adminUrl: `http://127.0.0.1:${adminPort}` };
}

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

/** Opens a stream and keeps it; `text` grows. */
async function openStream(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/api/v1/runs/r1/events/stream`, { headers });
  const stream = { status: response.status, text: "", ended: false, cut: false };
  void (async () => {
    try {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) stream.text += chunk;
    } catch {
      stream.cut = true;
    }
    stream.ended = true;
  })();
  return stream;
}

describe("publish, tail and end", () => {
  it("a run goes from stdin to stdout, whoever begins, and its end ends the tail", async () => {
    const { url } = await start(["--broker", "memory"]);
    const env = { PENSTOCK_URL: url };
    const tail = penstock(["tail", "story", "--json"], env);
    expect(await penstock(["publish", "story", "--kind", "token", "--index"], env).finish('{"text":"Once"}\n{"n":1.0}\n')).toBe(
      0,
    );
    await tail.untilStdout('"n":1.0');
    expect(await penstock(["publish", "story", "--text", "--kind", "other"], env).finish("upon a time")).toBe(0);
    await tail.untilStdout("upon a time");
    const end = penstock(["end", "story"], env);
    expect(await end.finish()).toBe(0);
    expect(await tail.exitCode()).toBe(0);

    const frames = tail.lines().map((line) => JSON.parse(line));
    expect(frames.map(({ event }) => event)).toEqual(["token", "token", "other", "end"]);
    expect(frames[0]).toMatchObject({ data: { kind: "token", index: 0, payload: { text: "Once" } } });

    const late = penstock(["tail", "story", "--json", "--kind", "other"], env);
    expect(await late.finish()).toBe(0);
    expect(late.lines().map((line) => JSON.parse(line).event)).toEqual(["other", "end"]);
    const again = penstock(["end", "story"], env);
    expect(await again.finish()).toBe(0);
    expect(again.stdout).toBe(end.stdout);
  });

  it("a tail outlives its gateway, and goes on at the next", async () => {
    const port = String(await freePort());
    const flags = ["--broker", "memory", "--port", port];
    const first = await start(flags);
    const tail = penstock(["tail", "r1", "--json", "--url", first.url]);
    await penstock(["publish", "r1", "--url", first.url]).finish('{"n":1}\n');
    await tail.untilStdout('"n":1');
    first.cli.child.kill("SIGKILL");
    await tail.untilStderr("trying again");
    const second = await start(flags);
    await penstock(["publish", "r1", "--url", second.url, "--end"]).finish('{"n":2}\n');
    expect(await tail.exitCode(20_000)).toBe(0);
    expect(tail.stdout).toContain('"n":2');
    // The memory of the first went with it, and the tail says so.
    expect(tail.stdout).toContain('"event":"gap"');
  });
});

describe("how a gateway starts", () => {
  it("says in one line where it listens, and takes its settings from file, variables and flags", async () => {
    const config = file("gateway.yaml", "broker: memory\npathPrefix: /zenml\nstreaming: {heartbeatSeconds: 0.2}\n");
    const { cli, url } = await start(["--config", config], { PENSTOCK_PATH_PREFIX: "/live/" });
    expect(cli.lines().filter((line) => line.includes("listening"))).toHaveLength(1);
    expect((await fetch(`${url}/live/api/v1/info`)).status).toBe(200);
    expect((await fetch(`${url}/zenml/api/v1/info`)).status).toBe(404);
    const stream = await openStream(`${url}/live`);
    await waitFor("a heartbeat", () => stream.text.includes(": ping\n\n"));
  });

  it.each([
    ["a wrong address of Redis", { PENSTOCK_REDIS_URL: "http://hush@redis.example.org" }],
    ["a Redis that is not there", { PENSTOCK_REDIS_URL: "redis://:hush@127.0.0.1:1/0" }],
  ])("%s ends it with one line, without the password", async (_, env) => {
    const cli = penstock(["gateway", "--broker", "redis", "--deployment-id", "d", "--port", "0", "--admin-port", "0"], env);
    expect(await cli.exitCode()).toBe(1);
    expect(cli.stderr).toMatch(/^Stream broker startup probe failed: .+\n$/);
    expect(cli.stdout + cli.stderr).not.toContain("hush");
  });

  it("a port that is taken ends it with the flag that chooses another", async () => {
    const stranger = createServer().listen(0, "127.0.0.1");
    await once(stranger, "listening");
    const { port } = stranger.address() as AddressInfo;
    const cli = penstock(["gateway", "--broker", "memory", "--port", String(port), "--admin-port", "0"]);
    expect(await cli.exitCode()).toBe(1);
    expect(cli.stderr).toBe(`penstock: 127.0.0.1:${port} is taken by another program; choose another port with --port.\n`);
    stranger.close();
  });

  it("without a broker it runs, says so, and answers 501", async () => {
    const { cli, url } = await start([]);
    await cli.untilStdout("no broker is configured");
    expect((await fetch(`${url}/api/v1/runs/r1/events/stream`)).status).toBe(501);
  });

  it("a broker can be a module of one's own, and one that is none says so", async () => {
    const broker = new URL("../../gateway/broker/memory.ts", import.meta.url).pathname;
    const own = file(
      "own.mjs",
      `import { createMemoryBroker } from ${JSON.stringify(broker)};
       export const createBroker = (context) => createMemoryBroker({ totalBytes: 1e7, maxStreamLength: 10, streamTtlSeconds: 60 }, context);`,
    );
    const { url } = await start(["--broker", own]);
    const result = penstock(["publish", "r1", "--url", url]);
    expect(await result.finish('{"n":1}\n')).toBe(0);

    const none = file("none.mjs", "export const nothing = 1;");
    const cli = penstock(["gateway", "--broker", none, "--port", "0", "--admin-port", "0"]);
    expect(await cli.exitCode()).toBe(1);
    expect(cli.stderr).toMatch(/does not export createBroker/);
  });
});

describe("how a gateway ends", () => {
  it("SIGTERM: not ready at once, then its streams end cleanly, to be resumed, and the exit code is 0", async () => {
    const { cli, url, adminUrl } = await start(["--broker", "memory", "--drain-delay-seconds", "0.5"]);
    await penstock(["publish", "r1", "--url", url]).finish('{"n":1}\n');
    const stream = await openStream(url);
    await waitFor("the event", () => stream.text.includes('"n":1'));
    expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
    expect(await (await fetch(`${adminUrl}/metrics`)).text()).toContain("penstock_connections 1\n");
    cli.child.kill("SIGTERM");
    await waitFor("readiness falls", async () => (await fetch(`${adminUrl}/readyz`)).status === 503);
    expect(stream.ended).toBe(false);
    expect(await cli.exitCode()).toBe(0);
    await waitFor("the stream ends", () => stream.ended);
    expect(stream).toMatchObject({ cut: false });
    expect(stream.text).toMatch(/\nretry: \d+\n/);
    expect(stream.text).not.toContain("event: gap");
    expect(stream.text).not.toContain("event: end");
  });

  it("a publish under way at SIGTERM is answered before it leaves", async () => {
    const broker = join(folder, "slow-broker.mjs");
    writeFileSync(
      broker,
      `import { createMemoryBroker } from ${JSON.stringify(new URL("../../gateway/broker/memory.ts", import.meta.url).href)};
      export function createBroker(context) {
        const broker = createMemoryBroker({ totalBytes: 1e8, maxStreamLength: 10, streamTtlSeconds: 60 }, context);
        const publish = broker.publish.bind(broker);
        broker.publish = async (request) => {
          context.log.info({}, "publishing");
          await new Promise((resolve) => setTimeout(resolve, 1_500));
          return publish(request);
        };
        return broker;
      }`,
    );
    const { cli, url } = await start(["--broker", broker, "--drain-delay-seconds", "0"]);
    const answer = fetch(`${url}/api/v1/runs/r1/events`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"events":[{"kind":"token"}]}',
    });
    await waitFor("the publish has come", () => cli.stdout.includes('"publishing"'));
    cli.child.kill("SIGTERM");
    expect((await answer).status).toBe(200);
    expect(await cli.exitCode()).toBe(0);
  });

  it("the reader of its log may be gone: it serves, drains and leaves all the same", async () => {
    const { cli, url } = await start(["--broker", "memory"]);
    cli.child.stdout.destroy();
    expect((await fetch(`${url}/api/v1/info`)).status).toBe(200);
    cli.child.kill("SIGTERM");
    expect(await cli.exitCode()).toBe(0);
  });

  it("the reader of its log may read nothing: it serves, and leaves all the same", async () => {
    const full = join(folder, "full");
    execFileSync("mkfifo", [full]);
    const bothEnds = openSync(full, constants.O_RDWR | constants.O_NONBLOCK);
    expect(() => {
      for (;;) writeSync(bothEnds, "x".repeat(1_000));
    }).toThrow("EAGAIN");
    const port = String(await freePort());
    const blocking = openSync(full, constants.O_WRONLY);
    const child = spawn(
      process.execPath,
      ["gateway/main.ts", "gateway", "--broker", "memory", "--port", port, "--admin-port", "0"],
      {
        cwd: new URL("../..", import.meta.url),
        env: { PATH: process.env["PATH"], PENSTOCK_DRAIN_DELAY_SECONDS: "0" },
        stdio: ["ignore", blocking, "ignore"],
      },
    );
    const ended = once(child, "exit");
    await waitFor("it serves", () =>
      fetch(`http://127.0.0.1:${port}/api/v1/info`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
    child.kill("SIGTERM");
    let byItself = true;
    const limit = setTimeout(() => {
      byItself = false;
      child.kill("SIGKILL");
    }, 10_000);
    await ended;
    clearTimeout(limit);
    expect(byItself).toBe(true);
    closeSync(bothEnds);
    closeSync(blocking);
  });

  it("a second signal ends it at once", async () => {
    const { cli } = await start(["--broker", "memory"], { PENSTOCK_DRAIN_DELAY_SECONDS: "600" });
    cli.child.kill("SIGINT");
    await cli.untilStdout('"draining"');
    cli.child.kill("SIGINT");
    expect(await cli.exitCode()).toBe(130);
  });
});

describe("who may do what", () => {
  it("static: the commands carry the token, and without it they are refused", async () => {
    const tokens = file(
      "tokens.yaml",
      "tokens: [{id: a, token: writer-token-0123456789, rights: [read, publish], runs: [mine]}]",
    );
    const { url, cli } = await start(["--broker", "memory", "--auth", "static", "--tokens-file", tokens]);
    const env = { PENSTOCK_TOKEN: "writer-token-0123456789" };
    expect(await penstock(["publish", "mine", "--url", url, "--end"], env).finish('{"n":1}\n')).toBe(0);
    expect(await penstock(["tail", "mine", "--url", url], env).finish()).toBe(0);
    const foreign = penstock(["publish", "theirs", "--url", url], env);
    expect(await foreign.finish('{"n":1}\n')).toBe(1);
    expect(foreign.stderr).toContain("the gateway answered 403");
    const nobody = penstock(["tail", "mine", "--url", url]);
    expect(await nobody.finish()).toBe(1);
    expect(nobody.stderr).toContain("the gateway answered 401");
    expect(cli.stdout + cli.stderr).not.toContain("writer-token");
  });

  it("jwt: a stream ends with its token, and the token opens no other", async () => {
    const secret = "0123456789abcdef0123456789abcdef";
    const flags = ["--broker", "memory", "--auth", "jwt", "--jwt-key-file", file("secret", secret), "--heartbeat-seconds", "1"];
    const { url, cli } = await start(flags);
    const expires = Math.floor(Date.now() / 1_000) + 2;
    const jwt = await new SignJWT({ sub: "ada", scope: "runs:read", exp: expires })
      .setProtectedHeader({ alg: "HS256" })
      .sign(Buffer.from(secret));
    const headers = { authorization: `Bearer ${jwt}` };
    const stream = await openStream(url, headers);
    expect(stream.status).toBe(200);
    await waitFor("the stream ends", () => stream.ended, 6_000);
    expect(Date.now()).toBeGreaterThanOrEqual(expires * 1_000);
    expect(stream.text).toContain('event: error\ndata: {"reason":"unauthorized"}\n\n');
    expect(stream.cut).toBe(false);
    expect((await openStream(url, headers)).status).toBe(401);
    expect(cli.stdout + cli.stderr).not.toContain(jwt);
  });
});
