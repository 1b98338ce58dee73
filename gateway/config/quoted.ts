/** A value for a message: short, and without the credentials of a URL that stands in the wrong place. */
export function quoted(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").replace(/\/\/[^"\s]*@/g, "//***@").slice(0, 100);
}
