/** The text of a JSON string that lies at `start … end`, quotes included. The string must be valid JSON. */
export function readText(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString("utf8", start + 1, end - 1);
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}
