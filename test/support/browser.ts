/** A real browser for the tests: the machine's own Chromium or Chrome, never one that is downloaded. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** Path of a Chromium: the one that the variable CHROMIUM names, else the first in its usual places. */
export function findBrowser(): string | null {
  const named = process.env["CHROMIUM"];
  return (named ? [named] : PLACES).find((path) => existsSync(path)) ?? null;
}

/** Starts it without a window; it speaks with no one but the pages that are opened. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findBrowser();
  if (executablePath === null) throw new Error("No Chromium found; install it or set CHROMIUM to its path.");
  const args = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
  ];
  return await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-sync", ...args] });
}
