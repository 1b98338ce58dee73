/** The name that was probably meant: for "did you mean". */

/** The candidate nearest to `name`, or null when none is near. Case, dashes, dots and underscores do not count; groups may be missing. */
export function nearest(name: string, candidates: Iterable<string>): string | null {
  const wanted = plain(name.replace(PREFIX, ""));
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    for (const [index, ending] of endings(candidate.replace(PREFIX, "")).entries()) {
      const distance = editDistance(wanted, plain(ending)) + (index === 0 ? 0 : 0.5);
      if (distance >= bestDistance) continue;
      best = candidate;
      bestDistance = distance;
    }
  }
  return bestDistance <= Math.max(2, wanted.length / 3) ? best : null;
}

/** ` (did you mean X?)`, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const best = nearest(name, candidates);
  return best === null ? "" : ` (did you mean ${best}?)`;
}

const PREFIX = /^PENSTOCK_/;

/** The whole, and what stands behind each separator: a.b.c, b.c, c. */
function endings(name: string): string[] {
  const parts = name.split(/(?<=[._])/);
  return parts.map((_, index) => parts.slice(index).join(""));
}

function plain(name: string): string {
  return name.replace(/[-_.]/g, "").toLowerCase();
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
