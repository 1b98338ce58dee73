export interface BatchLimits {
  readonly items: number;
  /** UTF-8 bytes of all items; a single one may have more. */
  readonly bytes: number;
  readonly lingerMs: number;
}

/**
 * Groups what comes one by one: a lone item leaves after `lingerMs`, a stream of them in full batches. When the items end with an error,
 * those before it come out first.
 */
export async function* batches(items: AsyncIterator<string>, limits: BatchLimits): AsyncGenerator<string[]> {
  const ask = (): ReturnType<typeof items.next> => {
    const asked = items.next();
    // Thrown where it is awaited, which may be after a long request.
    asked.catch(() => {});
    return asked;
  };
  let next = ask();
  for (;;) {
    const first = await next;
    if (first.done) return;
    const batch = [first.value];
    let bytes = Buffer.byteLength(first.value);
    next = ask();
    const timer = timeout(limits.lingerMs);
    while (batch.length < limits.items) {
      const result = await Promise.race([next, timer.passed]).catch(() => undefined);
      if (result === undefined || result.done) break;
      bytes += Buffer.byteLength(result.value);
      if (bytes > limits.bytes) break;
      batch.push(result.value);
      next = ask();
    }
    timer.cancel();
    yield batch;
  }
}

function timeout(ms: number): { readonly passed: Promise<undefined>; cancel(): void } {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return { passed, cancel: () => clearTimeout(timer) };
}
