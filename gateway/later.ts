/**
 * Work for as soon as the stack has unwound, outside every callback of the engine (`docs/architecture.md`, law 1). What one turn of the
 * event loop asks for shares one `setImmediate`, and what that work asks for in its turn is done behind it, not a turn later: a turn
 * costs 3 to 4 µs, and every request would take some. Whoever has more to do than a turn should take goes on by `setImmediate`.
 */

/** Calls `work` with `about`, in the order of the calls. What it throws ends the process, as in a `setImmediate`. */
export function later<About>(work: (about: About) => void, about: About): void {
  works.push(work as Work);
  abouts.push(about);
  if (isPlanned) return;
  isPlanned = true;
  setImmediate(workThrough);
}

type Work = (about: unknown) => void;

let works: Work[] = [];
let abouts: unknown[] = [];
let isPlanned = false;

function workThrough(): void {
  let at = 0;
  try {
    while (at < works.length) {
      const next = at++;
      works[next]!(abouts[next]);
    }
  } finally {
    works = works.slice(at);
    abouts = abouts.slice(at);
    isPlanned = works.length > 0;
    // Only behind an error: whoever catches it must not lose the rest.
    if (isPlanned) setImmediate(workThrough);
  }
}
