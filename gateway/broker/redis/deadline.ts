/** Something that has to be done by a time. One timer for all: one each would be made and dropped for every publish. */
interface Waiter {
  /** By `performance.now()`. */
  readonly at: number;
  fail(): void;
}

/** How late it may be noticed. */
const LOOK_MS = 25;
const waiters = new Set<Waiter>();
let isLooking = false;

/** Settles with `promise`, or rejects with what `late` makes once `milliseconds` have passed, or up to 25 more. */
export function withDeadline<Value>(promise: Promise<Value>, milliseconds: number, late: () => Error): Promise<Value> {
  return new Promise((resolve, reject) => {
    const waiter: Waiter = { at: performance.now() + milliseconds, fail: () => reject(late()) };
    waiters.add(waiter);
    lookLater();
    promise.then(
      (value) => {
        waiters.delete(waiter);
        resolve(value);
      },
      (error: unknown) => {
        waiters.delete(waiter);
        reject(error);
      },
    );
  });
}

function lookLater(): void {
  if (isLooking) return;
  isLooking = true;
  setTimeout(look, LOOK_MS);
}

function look(): void {
  isLooking = false;
  const now = performance.now();
  for (const waiter of waiters) {
    if (waiter.at > now) continue;
    waiters.delete(waiter);
    waiter.fail();
  }
  if (waiters.size > 0) lookLater();
}
