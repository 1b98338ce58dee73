/** Settles with `promise`, or rejects with what `late` makes once `milliseconds` have passed. */
export function withDeadline<Value>(promise: Promise<Value>, milliseconds: number, late: () => Error): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), Math.max(milliseconds, 0));
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
