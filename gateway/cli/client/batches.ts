/** Groups what comes one by one: a lone item leaves after `lingerMs`, a stream of them in full batches. */
export async function* batches<Item>(
  items: AsyncIterator<Item>,
  limits: { readonly items: number; readonly lingerMs: number },
): AsyncGenerator<Item[]> {
  let next = items.next();
  for (;;) {
    const first = await next;
    if (first.done) return;
    const batch = [first.value];
    next = items.next();
    const timer = timeout(limits.lingerMs);
    while (batch.length < limits.items) {
      const result = await Promise.race([next, timer.passed]);
      if (result === undefined || result.done) break;
      batch.push(result.value);
      next = items.next();
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
