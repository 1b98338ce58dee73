/** How every command ends. */
export const EXIT = {
  ok: 0,
  /** It could not do what it was asked: could not start, was refused, gave up. */
  failed: 1,
  /** The command line or the configuration is wrong; nothing was done. */
  usage: 2,
} as const;

/** For the end of a command's help. `ok` and `failed` in the command's own words. */
export function exitCodesHelp(ok: string, failed: string): string {
  return `
Exit codes:
  0  ${ok}
  1  ${failed}
  2  the command line or the configuration is wrong; nothing was done`;
}
