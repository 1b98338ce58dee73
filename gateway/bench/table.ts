/** What a bench found, for people: within 100 columns. */
import type { createColors } from "picocolors";
import type { Comparison } from "./compare.ts";
import type { BenchDocument, WorkloadResult } from "./document.ts";

type Colors = ReturnType<typeof createColors>;

const WIDTH = 98;
const NOTHING = "–";

interface Column {
  readonly head: readonly [string, string];
  readonly width: number;
  text(result: WorkloadResult): string;
}

const COLUMNS: readonly Column[] = [
  { head: ["", "workload"], width: -10, text: ({ workload }) => workload },
  { head: ["", "readers"], width: 8, text: ({ judged }) => judged.readers.toLocaleString("en") },
  { head: ["", "runs"], width: 7, text: ({ plan }) => plan.runs.toLocaleString("en") },
  { head: ["connects", "/s"], width: 9, text: ({ measures }) => number(measures.connectsPerSecond) },
  { head: ["events", "/s"], width: 9, text: ({ measures }) => number(measures.eventsPerSecond) },
  { head: ["", "p50"], width: 7, text: ({ measures }) => number(measures.latencyP50Ms) },
  { head: ["latency,", "p99"], width: 8, text: ({ measures }) => number(measures.latencyP99Ms) },
  { head: [" in ms ", "p99.9"], width: 7, text: ({ measures }) => number(measures.latencyP999Ms) },
  { head: ["", "max"], width: 7, text: ({ measures }) => number(measures.latencyMaxMs) },
  { head: ["CPU s", "/M"], width: 7, text: ({ measures }) => number(measures.cpuSecondsPerMillion) },
  { head: ["µs", "/conn"], width: 6, text: ({ measures }) => number(measures.cpuMicrosPerConnect) },
  { head: ["KiB", "/conn"], width: 6, text: ({ measures }) => number(measures.kibPerConnection) },
];

const LEGEND = [
  "latency: from publish to reader; connect: until the head; replay: until a reader has everything.",
  "CPU s/M: the gateway's CPU time for a million events read; µs, KiB /conn: that of a connect.",
];

/** Lines of the whole report, the comparison aside. */
export function reportLines(document: BenchDocument, colors: Colors): string[] {
  const { machine, target, results, noGatewayFigures } = document;
  const lines = [
    `${target.url}, Penstock ${target.penstockVersion}; here ${machine.cores} cores (${machine.cpu}), Node.js ${machine.node}`,
    "",
    colors.bold(row(COLUMNS.map(({ head, width }) => pad(head[0], width)))),
    colors.bold(row(COLUMNS.map(({ head, width }) => pad(head[1], width)))),
    ...results.map((result) => row(COLUMNS.map((column) => pad(column.text(result), column.width)))),
    "",
    ...results.flatMap((result) => verdictLines(result, colors)),
    "",
    ...LEGEND.map((line) => colors.gray(line)),
  ];
  if (noGatewayFigures !== null)
    lines.push(
      ...wrapped(`No figures of the gateway's process: ${noGatewayFigures}. --admin-url says where its admin port is.`, ""),
    );
  if (document.interrupted) lines.push("It was interrupted: this is what there was.");
  return lines;
}

export function comparisonLines({ when, measures, notes }: Comparison, tolerancePercent: number, colors: Colors): string[] {
  const lines = [
    "",
    colors.bold(`${pad("workload", -10)}  ${pad(`beside ${when}`, -26)}${pad("then", 10)}${pad("now", 10)}${pad("ratio", 8)}`),
  ];
  for (const { workload, label, before, now, ratio, isWorse } of measures) {
    const text = `${pad(workload, -10)}  ${pad(label, -26)}${pad(number(before), 10)}${pad(number(now), 10)}${pad(ratio === null ? NOTHING : ratio.toFixed(2), 8)}`;
    lines.push(isWorse ? colors.red(`${text}  worse`) : text);
  }
  lines.push(...notes.flatMap((note) => wrapped(note, "")));
  const worse = measures.filter(({ isWorse }) => isWorse).length;
  if (measures.length === 0) return [...lines, colors.red("Nothing was compared.")];
  lines.push(
    worse === 0
      ? `Nothing is worse by more than ${tolerancePercent} %.`
      : colors.red(`${worse} figures are worse by more than ${tolerancePercent} %.`),
  );
  return lines;
}

function verdictLines({ workload, verdict, reasons, notes, measures, judged }: WorkloadResult, colors: Colors): string[] {
  const paint = verdict === "ok" ? colors.green : verdict === "faulty" || verdict === "failed" ? colors.red : colors.yellow;
  const gaps = Object.entries(judged.gaps).map(([reason, count]) => `${count.toLocaleString("en")} ${reason}`);
  const facts =
    verdict === "ok"
      ? [
          judged.events === 0
            ? `all ${judged.readers.toLocaleString("en")} readers heard the end of their run`
            : `${judged.events.toLocaleString("en")} events read, none lost, doubled or out of order`,
        ]
      : [...reasons];
  if (gaps.length > 0) facts.push(`gaps told: ${gaps.join(", ")} (${judged.missedInGaps.toLocaleString("en")} events)`);
  if (measures.calmP99Ms !== null) facts.push(`p99 was ${number(measures.calmP99Ms)} ms before some stopped reading`);
  if (measures.catchUpSeconds !== null)
    facts.push(`they had everything ${number(measures.catchUpSeconds)} s after they read again`);
  const [first = "", ...rest] = wrapped([...facts, ...notes].join("; "), " ".repeat(23), WIDTH - 23);
  return [`${pad(workload, -10)}  ${paint(pad(verdict, -11))}${first.trimStart()}`, ...rest];
}

function row(cells: readonly string[]): string {
  return cells.join("").trimEnd();
}

/** Negative widths are filled on the right. */
function pad(text: string, width: number): string {
  return width < 0 ? text.padEnd(-width) : text.padStart(width);
}

/** Three digits that count, with commas where there are many. */
function number(value: number | null): string {
  if (value === null) return NOTHING;
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function wrapped(text: string, indent: string, width = WIDTH): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length + 1 > width) {
      lines.push(indent + line);
      line = word;
    } else line += line === "" ? word : ` ${word}`;
  }
  return [...lines, indent + line];
}
