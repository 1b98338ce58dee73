import { afterEach, describe, expect, it } from "vitest";
import { Cli } from "./run-cli.ts";
import { json, ScriptedGateway, stream } from "./scripted-gateway.ts";

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

async function gateway(...answers: ConstructorParameters<typeof ScriptedGateway>): Promise<ScriptedGateway> {
  const server = await new ScriptedGateway(...answers).start();
  open.push(server);
  return server;
}

const stored = json(200, { count: 1, last_id: "1700000000000-0" });
const event = (id: string, payload: string, kind = "token") =>
  `id: ${id}\nevent: ${kind}\ndata: {"step_name":"draft","correlation_id":null,"index":1,"kind":"${kind}","payload":${payload}}\n\n`;
const END = "retry: 3600000\nevent: end\ndata: {}\n\n";

describe("penstock publish", () => {
  it("sends lines as they are spelt, in batches, with what the flags say", async () => {
    const server = await gateway(stored);
    const flags = ["--kind", "token", "--correlation-id", "c1", "--step-name", "draft", "--index", "--batch", "2"];
    const cli = new Cli(["publish", "run 1/x", "--url", `${server.url}/zenml/`, ...flags], { PENSTOCK_TOKEN: "tok-1" });
    expect(await cli.finish('{"n": 1.0}\n\n{"n":12345678901234567890}\r\n{"n":3}')).toBe(0);
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(
      Array(2).fill("POST /zenml/api/v1/runs/run%201%2Fx/events"),
    );
    expect(server.seen.map(({ body }) => body)).toEqual([
      '{"events":[{"kind":"token","step_name":"draft","correlation_id":"c1","index":0,"payload":{"n": 1.0}},' +
        '{"kind":"token","step_name":"draft","correlation_id":"c1","index":1,"payload":{"n":12345678901234567890}}]}',
      '{"events":[{"kind":"token","step_name":"draft","correlation_id":"c1","index":2,"payload":{"n":3}}]}',
    ]);
    expect(server.seen[0]?.headers).toMatchObject({ authorization: "Bearer tok-1", "content-type": "application/json" });
    expect(JSON.parse(cli.stdout)).toEqual({ count: 3, last_id: "1700000000000-0" });
  });

  it("sends text with --text, empty lines too, and ends the run with --end", async () => {
    const server = await gateway(stored, json(200, { last_id: "1700000000000-9" }));
    const cli = new Cli(["publish", "r", "--url", server.url, "--text", "--end"]);
    expect(await cli.finish('say "hi"\n\n')).toBe(0);
    expect(server.seen.map(({ url, body }) => [url, body])).toEqual([
      [
        "/api/v1/runs/r/events",
        '{"events":[{"kind":"message","payload":{"text":"say \\"hi\\""}},{"kind":"message","payload":{"text":""}}]}',
      ],
      ["/api/v1/runs/r/end", ""],
    ]);
    expect(JSON.parse(cli.stdout)).toEqual({ count: 2, last_id: "1700000000000-9" });
  });

  it("sends large lines in requests that the gateway takes", async () => {
    const server = await gateway(stored);
    const cli = new Cli(["publish", "r", "--url", server.url, "--batch", "1000"]);
    const line = `{"t":"${"x".repeat(1_000_000)}"}\n`;
    expect(await cli.finish(line.repeat(20))).toBe(0);
    expect(JSON.parse(cli.stdout)).toMatchObject({ count: 20 });
    for (const { body } of server.seen) expect(body.length).toBeLessThan(5_000_000);
    expect(server.seen.flatMap(({ body }) => JSON.parse(body).events)).toHaveLength(20);
  });

  it("a line leaves without waiting for the next", async () => {
    const server = await gateway(stored);
    const cli = new Cli(["publish", "r", "--url", server.url]);
    cli.child.stdin.write('{"n":1}\n');
    await expect.poll(() => server.seen.length, { timeout: 10_000 }).toBe(1);
    expect(await cli.finish('{"n":2}\n')).toBe(0);
    expect(server.seen).toHaveLength(2);
  });

  it("tries again with the same key and body while the gateway is away", async () => {
    const server = await gateway(
      json(503, { detail: "Broker publish failed." }, { "retry-after": "0" }),
      (response) => response.destroy(),
      stored,
    );
    const cli = new Cli(["publish", "r", "--url", server.url]);
    expect(await cli.finish('{"n":1}\n')).toBe(0);
    expect(server.seen).toHaveLength(3);
    expect(new Set(server.seen.map(({ headers, body }) => `${headers["idempotency-key"]} ${body}`)).size).toBe(1);
    expect(server.seen[0]?.headers["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(cli.stderr).toContain("the gateway answered 503: Broker publish failed.; trying again in 0.0 s");
  });

  it("each batch has a key of its own", async () => {
    const server = await gateway(stored);
    await new Cli(["publish", "r", "--url", server.url, "--batch", "1"]).finish('{"n":1}\n{"n":2}\n');
    expect(new Set(server.seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(2);
  });

  it.each([
    [
      "is refused",
      json(403, { detail: "UPDATE on this run is needed." }),
      [],
      1,
      "the gateway answered 403: UPDATE on this run is needed.",
    ],
    [
      "gives up after --retry-seconds",
      json(503, { detail: "away" }),
      ["--retry-seconds", "0"],
      1,
      "gave up after 0 s: the gateway answered 503: away",
    ],
  ])("%s: exit code 1 and one line", async (_, answer, flags, code, message) => {
    const server = await gateway(answer);
    const cli = new Cli(["publish", "r", "--url", server.url, ...flags]);
    // stdin stays open, as that of a producer that goes on.
    cli.child.stdin.write('{"n":1}\n');
    expect(await cli.exitCode()).toBe(code);
    expect(cli.stderr).toBe(`penstock: ${message}\n`);
  });

  it.each(["1", "100"])("a line that is no JSON object is named; what came before is stored (batches of %s)", async (most) => {
    const server = await gateway(stored);
    const cli = new Cli(["publish", "r", "--url", server.url, "--batch", most]);
    expect(await cli.finish('{"n":1}\n[2]\n{"n":3}\n')).toBe(1);
    expect(cli.stderr).toBe(
      "penstock: line 2 is no JSON object; correct it, or publish text with --text. The lines before it are stored.\n",
    );
    expect(server.seen.map(({ body }) => body)).toEqual(['{"events":[{"kind":"message","payload":{"n":1}}]}']);
  });
});

describe("penstock end", () => {
  it("ends the run, once the gateway is back", async () => {
    const server = await gateway(json(503, { detail: "away" }, { "retry-after": "0" }), json(200, { last_id: "5-0" }));
    const cli = new Cli(["end", "r", "--url", server.url, "--token", "t-1"]);
    expect(await cli.finish()).toBe(0);
    expect(JSON.parse(cli.stdout)).toEqual({ last_id: "5-0" });
    expect(server.seen[1]).toMatchObject({
      method: "POST",
      url: "/api/v1/runs/r/end",
      body: "",
      headers: { authorization: "Bearer t-1" },
    });
  });

  it("no gateway: exit code 1", async () => {
    const cli = new Cli(["end", "r", "--url", "http://127.0.0.1:1", "--retry-seconds", "0"]);
    expect(await cli.finish()).toBe(1);
    expect(cli.stderr).toMatch(/^penstock: gave up after 0 s: .+\n$/);
  });
});

describe("penstock tail", () => {
  it("prints events as JSON, their data as it came, and ends with the run", async () => {
    const server = await gateway(
      stream(
        `retry: 10\n: ok\n${event("1-0", '{"n":1.0,"big":12345678901234567890}')}id: 2-0\nevent: cursor\ndata: {}\n\n${END}`,
        "stays",
      ),
    );
    const cli = new Cli(["tail", "r", "--json", "--url", server.url]);
    expect(await cli.finish()).toBe(0);
    expect(cli.lines()).toEqual([
      '{"id":"1-0","event":"token","data":{"step_name":"draft","correlation_id":null,"index":1,"kind":"token","payload":{"n":1.0,"big":12345678901234567890}}}',
      '{"event":"end","data":{}}',
    ]);
  });

  it("comes back with its position, and asks for filters again but not for a start", async () => {
    const server = await gateway(
      stream(`retry: 10\n\n${event("1-0", "{}")}`, "ends"),
      json(503, { detail: "full" }, { "retry-after": "0" }),
      stream("id: 7-0\nevent: cursor\ndata: {}\n\n", "is cut"),
      stream(event("8-0", "{}") + END, "ends"),
    );
    const flags = ["--tail", "5", "--kind", "token", "--kind", "a,b", "--step-name", "draft", "--correlation-id", "c 1"];
    const cli = new Cli(["tail", "r", "--json", "--url", server.url, ...flags]);
    expect(await cli.finish()).toBe(0);
    expect(server.seen.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "1-0", "1-0", "7-0"]);
    const filters = "kinds=token&kinds=a%2Cb&step_names=draft&correlation_ids=c+1";
    expect(server.seen.map(({ url }) => url)).toEqual([
      `/api/v1/runs/r/events/stream?tail=5&${filters}`,
      ...Array(3).fill(`/api/v1/runs/r/events/stream?${filters}`),
    ]);
    expect(cli.lines()).toHaveLength(3);
    expect(cli.stderr).toContain("the stream ended here; trying again in 0.0 s");
  });

  it("shows gaps in colour, and cannot be made to steer the terminal", async () => {
    const gap = 'event: gap\ndata: {"reason": "retention", "from": "1-0", "to": "9-0", "missed": 7}\n\n';
    const server = await gateway(stream(event("1700000000000-0", '{"text":"hi\\u001b[31m"}') + gap + END, "stays"));
    const cli = new Cli(["tail", "r", "--url", server.url], { FORCE_COLOR: "1" });
    expect(await cli.finish()).toBe(0);
    const [first, second, third] = cli.lines();
    expect(first).toMatch(/\d\d:\d\d:\d\d\.\d{3}.*token.*draft.*\{"text":"hi\\u001b\[31m"\}$/);
    expect(second).toBe("\u001b[33mgap (retention): 7 events are missing between 1-0 and 9-0\u001b[39m");
    expect(third).toContain("end of the run");
  });

  it.each([
    [401, "The token has expired."],
    [400, "since is no event id."],
    [501, "Live event streaming is not enabled on this server."],
  ])("a refusal for good (%i) is told and ends it", async (status, detail) => {
    const server = await gateway(json(status, { detail }));
    const cli = new Cli(["tail", "r", "--url", server.url]);
    expect(await cli.finish()).toBe(1);
    expect(cli.stderr).toBe(`penstock: the gateway answered ${status}: ${detail}\n`);
  });

  it("gives up after --retry-seconds without a connection", async () => {
    const cli = new Cli(["tail", "r", "--url", "http://127.0.0.1:1", "--retry-seconds", "0.5"]);
    expect(await cli.finish()).toBe(1);
    expect(cli.stderr).toContain("gave up after 0.5 s");
  });

  it("a reader of its output that leaves is no failure", async () => {
    const server = await gateway((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let id = 1;
      const timer = setInterval(() => response.write(event(`${id++}-0`, "{}")), 5);
      response.once("close", () => clearInterval(timer));
    });
    const cli = new Cli(["tail", "r", "--json", "--url", server.url]);
    await cli.untilStdout('"3-0"');
    cli.child.stdout.destroy();
    expect(await cli.exitCode()).toBe(0);
  });
});

describe("the command line", () => {
  it.each([
    ["an unknown command", ["gatway"], /unknown command 'gatway'/],
    [
      "an unknown flag, with the nearest right one",
      ["gateway", "--prot", "1"],
      /unknown option '--prot'\n\(Did you mean --port\?\)/,
    ],
    ["no run", ["tail"], /missing required argument 'run'/],
    ["a number that is none", ["tail", "r", "--tail", "x"], /Write a whole number/],
    ["two starts", ["tail", "r", "--tail", "1", "--since", "1-0"], /cannot be used with/],
    ["an id that is none", ["tail", "r", "--since", "yesterday"], /--since is no id; write one such as/],
    ["an address that is none", ["end", "r", "--url", "localhost:8080"], /--url is no http:\/\/ or https:\/\/ address/],
    ["an address with a password", ["end", "r", "--url", "http://me:hush@localhost:8080"], /^(?!.*hush).* give a token instead/],
    ["a setting that cannot be used", ["gateway", "--port", "x"], /port \(from --port\) is "x"; write/],
  ])("%s: exit code 2", async (_, args, message) => {
    const cli = new Cli(args);
    expect(await cli.finish()).toBe(2);
    expect(cli.stderr).toMatch(message);
    expect(cli.stdout).toBe("");
  });

  it.each([["gateway"], ["publish"], ["tail"], ["end"], ["config", "check"], ["config", "schema"]])(
    "%s explains itself and its exit codes",
    async (...args) => {
      const cli = new Cli([...args, "--help"]);
      expect(await cli.finish()).toBe(0);
      expect(cli.stdout).toContain("Exit codes:\n  0  ");
    },
  );

  it("config check says what counts and where it comes from, and shows no secret", async () => {
    const env = { ZENML_REDIS_BROKER_URL: "redis://:hush@redis.example.org", PENSTOCK_DEPLOYMENT_ID: "live" };
    const cli = new Cli(["config", "check", "--broker", "redis"], env);
    expect(await cli.finish()).toBe(0);
    expect(cli.lines()).toEqual([
      'deploymentId = "live"  (from PENSTOCK_DEPLOYMENT_ID)',
      'broker = "redis"  (from --broker)',
      'redis.url = "***"  (from ZENML_REDIS_BROKER_URL)',
      "The configuration can be used.",
    ]);
  });

  it.each([
    ["PENSTOCK_REDIS_USERNAME_FILE", "redis.usernameFile"],
    ["PENSTOCK_REDIS_PASSWORD_FILE", "redis.passwordFile"],
    ["PENSTOCK_REDIS_TLS_CA_FILE", "redis.tls.caFile"],
  ])("config check reads the file of %s, and names the setting when it cannot", async (variable, setting) => {
    const env = { PENSTOCK_REDIS_URL: "rediss://redis.example.org", PENSTOCK_DEPLOYMENT_ID: "live", [variable]: "/no/such/file" };
    const cli = new Cli(["config", "check", "--broker", "redis"], env);
    expect(await cli.finish()).toBe(2);
    expect(cli.stderr).toContain(`${setting}: the file /no/such/file cannot be read (ENOENT); correct its path or rights.`);
    expect(cli.stdout).toBe("");
  });

  it("config schema knows every group, and its types", async () => {
    const cli = new Cli(["config", "schema"]);
    expect(await cli.finish()).toBe(0);
    const schema = JSON.parse(cli.stdout);
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties.port).toMatchObject({ type: "integer", default: 8080, maximum: 65535 });
    expect(schema.properties.redis.properties.tls.properties.caFile.description).toMatch(/Certificates/);
    expect(schema.properties.streaming.properties.slowConsumer.enum).toEqual(["replay", "gap", "disconnect"]);
  });
});
