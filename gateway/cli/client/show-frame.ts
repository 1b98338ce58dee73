/** A frame as a line: for people, or for programs. */
import type { createColors } from "picocolors";
import type { Frame } from "./follow.ts";

type Colors = ReturnType<typeof createColors>;

/** One JSON object, its data as it came, so that numbers keep their spelling. Null for what only moves the position. */
export function jsonLine({ id, event, data }: Frame): string | null {
  if (event === "cursor") return null;
  const value = isJson(data) ? data : JSON.stringify(data);
  return `{${id === null ? "" : `"id":${JSON.stringify(id)},`}"event":${JSON.stringify(event)},"data":${value}}`;
}

/** Time, kind, step, correlation id and payload of an event; what is missing of a gap. */
export function humanLine(frame: Frame, colors: Colors): string | null {
  switch (frame.event) {
    case "cursor":
      return null;
    case "end":
      return colors.green("end of the run");
    case "gap":
      return colors.yellow(gapText(frame.data));
    case "error":
      return colors.red(`the gateway ended the stream: ${printable(frame.data)}`);
    default:
      return eventText(frame, colors);
  }
}

function eventText({ id, event, data }: Frame, colors: Colors): string {
  const time = id === null ? "" : timeOf(id);
  if (!isJson(data)) return printable(`${time} ${event} ${data}`);
  const { step_name: step, correlation_id: correlation, index, payload } = JSON.parse(data) as Record<string, unknown>;
  const parts = [
    colors.gray(time),
    colors.cyan(printable(event)),
    ...[step, correlation, index]
      .filter((part) => part !== null && part !== undefined)
      .map((part) => colors.gray(printable(String(part)))),
    printable(JSON.stringify(payload) ?? data),
  ];
  return parts.join(" ");
}

function gapText(data: string): string {
  if (!isJson(data)) return `gap: ${printable(data)}`;
  const { reason, from, to, missed } = JSON.parse(data) as Record<string, unknown>;
  const count = missed === null || missed === undefined ? "events may be missing" : `${missed} events are missing`;
  return printable(`gap (${reason}): ${count} between ${from ?? "the start"} and ${to ?? "what follows"}`);
}

/** Local time of day out of an id's milliseconds; the id itself where those are no time. */
function timeOf(id: string): string {
  const date = new Date(Number(id.split("-", 1)[0]));
  if (Number.isNaN(date.getTime())) return printable(id);
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** A producer's text must not steer the reader's terminal. */
function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function isJson(data: string): boolean {
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}
