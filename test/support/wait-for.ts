/** Waits for a fact, with a limit: the tests' only way to wait. */
export async function waitFor(what: string, isTrue: () => unknown, limitMs = 15_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (let pause = 2; ; pause = Math.min(pause * 1.5, 100)) {
    if (await isTrue()) return;
    if (performance.now() > deadline) throw new Error(`waited ${limitMs / 1000} s in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
