import { accessSync, constants, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Command } from "commander";
import colors from "picocolors";
import { bench, isFlawless } from "../bench/bench.ts";
import { type BenchTarget, benchTarget } from "../bench/bench-target.ts";
import { compare, readSaved } from "../bench/compare.ts";
import type { BenchDocument } from "../bench/document.ts";
import { checkDescriptors } from "../bench/machine.ts";
import { type Plan, plansOf, type Sizes, WORKLOADS } from "../bench/plan.ts";
import { ProgressBar } from "../bench/progress-bar.ts";
import { CONNECTIONS_PER_ADDRESS, hasManyAddresses } from "../bench/source-address.ts";
import { comparisonLines, reportLines } from "../bench/table.ts";
import { ConfigError, PenstockError } from "../errors.ts";
import { bearerHeaders, gatewayAddress } from "./client/target.ts";
import { EXIT, exitCodesHelp } from "./exit-codes.ts";
import { secondsOption, wholeNumberOption } from "./number-option.ts";

interface BenchOptions extends Sizes {
  readonly workload?: readonly string[];
  readonly token?: string;
  readonly adminUrl?: string;
  readonly remote?: true;
  readonly json?: true;
  readonly save?: string;
  readonly compare?: string;
  readonly tolerance: number;
}

const ADMIN_PORT = 9090;
const MAX_SECONDS = 3_600;

export function benchCommand(done: (code: number) => void): Command {
  return new Command("bench")
    .description(
      "Load a gateway, measure it, and judge whether every reader got every event once and in order. On this machine only.",
    )
    .argument("[url]", "address of the gateway, with its path prefix (or PENSTOCK_URL; default: http://127.0.0.1:8080)")
    .option("-w, --workload <name>", `${WORKLOADS.join(", ")} or all (repeatable, or with commas; default: all)`, collect)
    .addOption(wholeNumberOption("--readers <n>", "readers (default: 1000; stalled: 100)", 1, 200_000))
    .addOption(
      wholeNumberOption("--runs <n>", "runs that they are spread over (default: one for 100; many-runs: for 2)", 1, 200_000),
    )
    .addOption(wholeNumberOption("--rate <n>", "events a second in all (default: 100; many-runs: 500)", 1, 100_000))
    .addOption(secondsOption("--seconds <s>", "how long events are published (default: 5; stalled: twice)"))
    .addOption(wholeNumberOption("--bytes <n>", "bytes of an event's payload (default: 200; stalled: 10000)", 1, 65_000))
    .addOption(wholeNumberOption("--stalled-percent <n>", "readers that stop reading, of stalled (default: 5)", 1, 50))
    .addOption(
      wholeNumberOption("--replay-events <n>", "events of a run before its readers come, of replay (default: 200)", 1, 100_000),
    )
    .addOption(wholeNumberOption("--connect-rate <n>", "connects a second (default: 1000)", 1, 100_000))
    .option("--token <token>", "bearer token (better: PENSTOCK_TOKEN, which no list of processes shows)")
    .option(
      "--admin-url <url>",
      `address of the gateway's admin port, for its CPU time and memory (default: port ${ADMIN_PORT} of its host)`,
    )
    .option("--remote", "load a gateway on another machine")
    .option("--json", "print one JSON document")
    .option("--save <file>", "write the JSON document to a file")
    .option("--compare <file>", "set the figures beside those that were saved")
    .addOption(wholeNumberOption("--tolerance <percent>", "how much worse than --compare's something may be", 0, 10_000, 20))
    .addHelpText(
      "after",
      exitCodesHelp(
        "everything was measured, and nothing was wrong or worse",
        "the gateway lost, doubled, disordered or refused something; something is worse; no valid figures",
      ),
    )
    .action(async (url: string | undefined, options: BenchOptions) => done(await run(url, options)));
}

async function run(url: string | undefined, options: BenchOptions): Promise<number> {
  const target = benchTarget(
    gatewayAddress(url, "The address", process.env),
    bearerHeaders(options.token, process.env),
    options.remote === true,
  );
  if (options.seconds !== undefined && (options.seconds <= 0 || options.seconds > MAX_SECONDS))
    throw new ConfigError(`--seconds must be above 0, and at most ${MAX_SECONDS}.`);
  const plans = plansOf(options.workload ?? ["all"], options);
  checkReaders(plans, target);
  const saved = options.compare === undefined ? null : readSaved(options.compare);
  if (options.save !== undefined) checkFolder(options.save);

  const bar = new ProgressBar(process.stderr);
  const interrupt = new AbortController();
  const release = onInterrupt(() => {
    if (interrupt.signal.aborted) process.exit(130);
    bar.clear();
    process.stderr.write("penstock: ending its runs; once more leaves at once\n");
    interrupt.abort();
  });
  let document: BenchDocument;
  try {
    const adminUrl =
      options.adminUrl === undefined ? defaultAdminUrl(target) : gatewayAddress(options.adminUrl, "--admin-url", {});
    document = await bench({
      target,
      adminUrl,
      plans,
      signal: interrupt.signal,
      progress: (step, share) => bar.show(step, share),
    });
  } finally {
    bar.clear();
    release();
  }
  const comparison = saved === null ? null : compare(document, saved, options.tolerance);
  const text = `${JSON.stringify(comparison === null ? document : { ...document, comparison }, null, 2)}\n`;
  if (options.json === true) process.stdout.write(text);
  else {
    const lines = reportLines(document, colors);
    if (comparison !== null) lines.push(...comparisonLines(comparison, options.tolerance, colors));
    process.stdout.write(`${lines.join("\n")}\n`);
  }
  if (options.save !== undefined) save(options.save, text);
  // One that compares nothing has not shown that nothing is worse.
  const isWorse =
    comparison !== null && (comparison.measures.length === 0 || comparison.measures.some((measure) => measure.isWorse));
  return isFlawless(document) && !isWorse ? EXIT.ok : EXIT.failed;
}

/** What this machine cannot hold is said before anything is loaded. */
function checkReaders(plans: readonly Plan[], { host }: BenchTarget): void {
  const most = Math.max(...plans.map(({ readers }) => readers));
  checkDescriptors(most);
  if (most > CONNECTIONS_PER_ADDRESS && !hasManyAddresses(host)) {
    throw new ConfigError(
      `--readers: from one address at most ${CONNECTIONS_PER_ADDRESS.toLocaleString("en")} reach another; ` +
        "give fewer, or on Linux use 127.0.0.1, which has more addresses.",
    );
  }
}

function defaultAdminUrl({ host }: BenchTarget): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${ADMIN_PORT}`;
}

/** Before anything is measured, which takes its time. */
function checkFolder(path: string): void {
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw new ConfigError(
      `--save ${path} cannot be written (${(error as NodeJS.ErrnoException).code}); name a file in a folder that is there.`,
    );
  }
}

function save(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new PenstockError("PENSTOCK_BENCH", `--save ${path} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function onInterrupt(act: () => void): () => void {
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.on(signal, act);
  return () => {
    for (const signal of signals) process.off(signal, act);
  };
}

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
