import colors from "picocolors";

const PAINT: Record<string, (text: string) => string> = {
  fatal: colors.red,
  error: colors.red,
  warn: colors.yellow,
  info: colors.green,
  debug: colors.blue,
};

/** `12:34:56.789 INFO  listening port=8080` from a JSON line of the log. */
export function prettyLine(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const paint = PAINT[String(level)] ?? colors.gray;
  const rest = Object.entries(fields).map(
    ([key, value]) => colors.gray(`${key}=`) + (typeof value === "string" ? value : JSON.stringify(value)),
  );
  const parts = [String(time).slice(11, 23), paint(String(level).toUpperCase().padEnd(5)), String(msg), ...rest];
  return `${parts.join(" ")}\n`;
}
