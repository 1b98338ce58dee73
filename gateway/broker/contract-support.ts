/** What the parts of the broker contract share: the broker under test, and a reader that keeps what it hears. */
import { expect, vi } from "vitest";
import { compareEventIds, type EventId } from "../../protocol/event-id.ts";
import type { Broker, HistoryPage, Position, RunObserver, StoredEntry, Tail } from "./broker.ts";

export interface BrokerUnderTest {
  /** Started. */
  readonly broker: Broker;
  /** The `tailEntries` of its context; small (10 or so), so that tests can go beyond. */
  readonly tailEntries: number;
  /** True where trimmed ids are remembered, so that a gap says exactly how many entries are missing. */
  readonly countsMissed: boolean;
  /** False where nothing tells whether a stream was ever trimmed (Redis before 7). */
  readonly knowsTrims?: boolean;
  /** Keeps exactly the youngest `keep` entries of a run. */
  trim(runId: string, keep: number): Promise<void> | void;
  /** Removes a run's entries, but not its mark. */
  delete(runId: string): Promise<void> | void;
  close(): Promise<void>;
}

/** Publishes frames numbered from `first` and returns their ids. */
export async function publish(broker: Broker, runId: string, count: number, first = 0): Promise<EventId[]> {
  const result = await broker.publish({ runId, entries: frames(count, first), idempotency: null });
  expect(result.count).toBe(count);
  return (await readAll(broker, runId)).slice(-count).map((entry) => entry.id);
}

/** The whole history of a run, page by page. */
export async function readAll(broker: Broker, runId: string): Promise<StoredEntry[]> {
  const entries: StoredEntry[] = [];
  let position: Position | null = null;
  for (;;) {
    const page: HistoryPage = await broker.readPage(runId, position, 7);
    entries.push(...page.entries);
    position = page.next;
    if (page.atHead) return entries;
  }
}

/** Keeps what a watch hears. */
export class Recorder implements RunObserver {
  readonly calls: string[] = [];
  readonly entries: StoredEntry[] = [];
  tail: Tail | null = null;

  onTail(tail: Tail): void {
    this.calls.push("tail");
    this.tail = tail;
    this.entries.push(...tail.entries);
  }
  onEntries(entries: readonly StoredEntry[]): void {
    this.calls.push("entries");
    this.entries.push(...entries);
  }
  onGap(): void {
    this.calls.push("gap");
  }
  onMark(): void {
    this.calls.push("mark");
  }
  onOutage(): void {
    this.calls.push("outage");
  }
  onRecovered(): void {
    this.calls.push("recovered");
  }
  hasSeen(id: EventId): boolean {
    return this.entries.some((entry) => entry.id === id);
  }

  async until(fact: () => boolean): Promise<void> {
    await vi.waitFor(() => expect(fact()).toBe(true), WAIT);
  }
}

export const WAIT = { timeout: 10_000, interval: 5 };

export function frames(count: number, first = 0): Buffer[] {
  return Array.from({ length: count }, (_, n) =>
    Buffer.from(`{"type":"event","event":{"kind":"token","payload":{"n":${first + n}}}}`),
  );
}

export function texts(entries: readonly (StoredEntry | Buffer)[]): string[] {
  return entries.map((entry) => String(Buffer.isBuffer(entry) ? entry : entry.payload));
}

export function expectRising(entries: readonly StoredEntry[]): void {
  for (let n = 1; n < entries.length; n++) {
    const [before, after] = [entries[n - 1] as StoredEntry, entries[n] as StoredEntry];
    expect(compareEventIds(after.id, before.id), `${after.id} behind ${before.id}`).toBeGreaterThan(0);
  }
}
