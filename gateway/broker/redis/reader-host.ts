/** What a reader needs of the connections that it reads by. */
import type { ReplyHandler } from "./connection.ts";
import type { DuplicateFilter } from "./entries.ts";
import type { RunReader } from "./reader.ts";
import type { ReplyError } from "./resp.ts";

export interface ReaderHost {
  /** Whether commands can be sent. */
  readonly isReady: boolean;
  readonly settings: ReaderSettings;
  send(text: string, handler: ReplyHandler | null): void;
  /** Asks for the mark of the run's end; the answer comes soon by `onMark`, with the object that is returned here. */
  readMark(reader: RunReader): object;
  /** Reading failed (MOVED and ASK among the reasons): `retry` is to be called at `retryAt`, and `tellOutage` when it is due. */
  failed(reader: RunReader, error: ReplyError): void;
  /** An answer has come. */
  settled(reader: RunReader): void;
}

export interface ReaderSettings {
  /** Entries with which a watch begins. */
  readonly tailEntries: number;
  readonly streamTtlMs: number;
  /** Every run is read so often, whether or not a notice came. */
  readonly sweepMs: number;
  /** The counts of a run that has been idle for so long are compared. */
  readonly proofMs: number;
  /** Shared by all readers: its marks are of one run each. */
  readonly duplicates: DuplicateFilter;
  duplicateDropped(count: number): void;
  reads(count: number): void;
}
