/** How long to wait before the next try, by the number of failed ones: uniform(0, min(30 s, 0.5 s · 2ⁿ)), so that many clients spread out. */
export function backoffMs(failures: number, random: () => number = Math.random): number {
  return random() * Math.min(30_000, 500 * 2 ** failures);
}
