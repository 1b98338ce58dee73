/** `npm run demo` as its user meets it: the program, its page in a real Chromium, its curl line. */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startBrowser } from "../support/browser.ts";

const WAIT = { timeout: 15_000, interval: 50 };
const root = new URL("../..", import.meta.url).pathname;

let demo: ChildProcess;
/** All that the demo has said, on both outputs. */
let said = "";
let address: string;
let curl: string[];
let browser: Browser;
let page: Page;

beforeAll(async () => {
  // A process group of its own, so that it can be sent what Ctrl-C in a terminal sends: a signal to all of the group.
  const options: SpawnOptions = { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"] };
  demo = spawn(process.execPath, ["examples/demo/demo.ts", "--speed", "6"], options);
  for (const output of [demo.stdout!, demo.stderr!]) output.on("data", (data: Buffer) => (said += data));
  ({ address, curl } = await greeting());
  browser = await startBrowser();
  page = await open();
});

afterAll(async () => {
  await browser?.close();
  // Its own way to end: it takes its gateway along.
  if (demo !== undefined && demo.exitCode === null) {
    demo.kill("SIGTERM");
    await once(demo, "exit");
  }
});

describe("the demo's page", () => {
  it("shows the text of a generation as it comes", async () => {
    let seen = { generation: "", words: "" };
    const grows = async () => {
      const before = seen;
      seen = { generation: (await page.getAttribute("#text", "data-generation")) ?? "", words: await text("#text") };
      const grown = before.words !== "" && seen.words.length > before.words.length && seen.words.startsWith(before.words);
      return grown && seen.generation === before.generation;
    };
    await expect.poll(grows, WAIT).toBe(true);
    expect(await text("#question")).toMatch(/^[A-Z].*[?.]$/);
    expect(await state()).toBe("live");
    expect(await text("#position")).toMatch(/^\d+-\d+$/);
    expect(await page.locator("#log li[data-kind=token]").count()).toBeGreaterThan(0);
  });

  it("resumes after a cut without a lost or doubled token", async () => {
    const tokens = Number(await text("#tokens-seen"));
    await page.click("#cut");
    await expect.poll(state, WAIT).toBe("cut");
    await expect.poll(state, WAIT).toBe("live");
    await expect.poll(async () => Number(await text("#tokens-seen")), WAIT).toBeGreaterThan(tokens + 30);
    expect(await text("#log .cut")).toMatch(/^You cut the connection behind \d+-\d+\./);
    const position = /behind (\d+-\d+)/.exec(await text("#log .cut"))?.[1];
    expect(await text("#log .resumed")).toMatch(
      new RegExp(`^Resumed behind ${position}\\. [1-9]\\d* events came from history\\.$`),
    );
    expect(await text("#resumes")).toBe("1");
    expect(await text("#check")).toBe("0 lost, 0 doubled");
    expect(await text("#gaps")).toBe("0");
  });

  it("shows the same in a second tab", async () => {
    const second = await open();
    const texts: string[] = [];
    for (const tab of [page, second]) {
      await expect.poll(() => tab.locator('#generation option[value="answer-2"]').count(), { ...WAIT, timeout: 60_000 }).toBe(1);
      await tab.selectOption("#generation", "answer-1");
      await expect.poll(() => tab.getAttribute("#text", "data-generation"), WAIT).toBe("answer-1");
      expect(await tab.getAttribute("#text", "data-done")).toBe("true");
      texts.push(await text("#text", tab));
      expect(await text("#check", tab)).toBe("0 lost, 0 doubled");
    }
    expect(texts[0]).toMatch(/^A penstock is the pipe .* events rather well\.$/s);
    expect(texts[1]).toBe(texts[0]);
    await second.close();
  }, 90_000);

  it("shows what led to an answer, and the ones before it to be chosen", async () => {
    await page.selectOption("#generation", "answer-2");
    await expect.poll(() => text("#question"), WAIT).toBe("Why does an event stream need a position?");
    await expect.poll(() => text("#tool"), WAIT).toMatch(/^lookup_header\(.+\) → .+$/);
    expect(await text("#documents")).toBe("Server-sent events, read slowly · Ids that only rise · What a reader may forget");
    await page.click("#earlier button:has-text('What is a penstock?')");
    expect(await page.getAttribute("#text", "data-generation")).toBe("answer-1");
    expect(await text("#scores")).toBe("faithful 0.97 · complete 0.93 · polite 0.89");
    expect(await page.isVisible("#earlier-title")).toBe(false);
    await page.selectOption("#generation", "");
  });

  it("shows only what a filter lets through, and its position still moves", async () => {
    await page.click("#filters summary");
    await page.click("#kinds label:has-text('usage')");
    await page.click("#steps label:has-text('generate')");
    expect(await text("#filter-summary")).toBe("usage, generate");
    await expect.poll(() => page.locator("#log li[data-kind=usage]").count(), WAIT).toBeGreaterThan(0);
    expect(await text("#check")).toBe("filtered");
    expect(await page.isVisible("#hidden-text")).toBe(true);
    const position = await text("#position");
    await expect.poll(() => text("#position"), WAIT).not.toBe(position);
    expect(await page.locator("#log li:not(.note):not([data-kind=usage])").count()).toBe(0);
    expect(await page.locator("#log .source", { hasText: "suggest" }).count()).toBe(0);
    expect(await text("#gaps")).toBe("0");

    await page.click("#clear");
    await expect.poll(() => page.locator("#log li[data-kind=token]").count(), WAIT).toBeGreaterThan(0);
    expect(await text("#filter-summary")).toBe("none");
    expect(await text("#check")).toBe("0 lost, 0 doubled");
    expect(await page.isVisible("#hidden-text")).toBe(false);
  });
});

describe("the demo's program", () => {
  it("prints a curl line that shows the run", async () => {
    const child = spawn(curl[0]!, curl.slice(1), { stdio: ["ignore", "pipe", "ignore"] });
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (line === "event: token") break;
    }
    child.kill();
    expect(lines).toContain("event: step");
    expect(lines.find((line) => line.startsWith("data: "))).toContain('"question":"What is a penstock?"');
  });

  it("ends cleanly and without a word on Ctrl-C, and its gateway with it", async () => {
    const saidBefore = said;
    const ended = once(demo, "close");
    process.kill(-demo.pid!, "SIGINT");
    expect(await ended).toEqual([0, null]);
    expect(said).toBe(saidBefore);
    await expect(fetch(curl.at(-1)!)).rejects.toThrow();
    await expect.poll(state, WAIT).toMatch(/waiting|resuming/);
  });
});

async function open(): Promise<Page> {
  const tab = await browser.newPage();
  await tab.goto(address);
  return tab;
}

async function text(selector: string, tab: Page = page): Promise<string> {
  return (await tab.locator(selector).first().textContent()) ?? "";
}

async function state(): Promise<string | null> {
  return await page.getAttribute("#state", "data-state");
}

async function greeting(): Promise<{ address: string; curl: string[] }> {
  const found = await vi.waitUntil(() => {
    if (demo.exitCode !== null) throw new Error(`The demo ended before it said where its page is: ${said}`);
    const lines = /Page +(http:\S+)\n *curl +(curl .+)\n/.exec(said);
    return lines !== null && { address: lines[1]!, curl: lines[2]!.split(" ") };
  }, WAIT);
  return found as { address: string; curl: string[] };
}
