/** Names of the keys of one deployment. The run's key is ZenML's own; the others are ours, beside it. */
import { createHash } from "node:crypto";

export class Keys {
  readonly #prefix: string;

  constructor(keyPrefix: string, deploymentId: string) {
    this.#prefix = `${keyPrefix}:${deploymentId}`;
  }

  /** The stream of a run. */
  run(runId: string): string {
    return `${this.#prefix}:run:${runId}`;
  }

  /** The mark of a run's end: its id. */
  ended(runId: string): string {
    return `${this.#prefix}:ended:${runId}`;
  }

  /** What is known of one Idempotency-Key. The hash tag puts it into the run's own slot: a publish needs one node, not two. */
  once(runId: string, scopeHash: string): string {
    return `${this.#prefix}:once:{${this.run(runId)}}:${scopeHash}`;
  }

  /** Only ever read: whether this key can be read shows at start whether the user may read runs. */
  startupProbe(): string {
    return `${this.#prefix}:startup-probe`;
  }

  /** A stream of this process alone, written to see that what is written arrives. */
  canary(name: string): string {
    return `${this.#prefix}:canary:${name}`;
  }
}

/** SHA-256 of a caller and its key, hex. The length in front keeps two pairs from being one text. */
export function hashScopedKey(scope: string, key: string): string {
  return createHash("sha256").update(`${scope.length}:${scope}:${key}`).digest("hex");
}

/** Stands beside the entries of a batch: 16 characters that no other run, caller or key has. */
export function shortHash(runId: string, scopeHash: string): string {
  return createHash("sha256").update(`${runId}:${scopeHash}`).digest().subarray(0, 12).toString("base64url");
}
