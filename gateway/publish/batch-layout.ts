/** Where the events of a publish body lie: `{"events": [{…}, …]}`. */
import { MAX_BATCH_EVENTS } from "../../protocol/wire.ts";
import { NameTable } from "../json/names.ts";
import type { ValueVisitor } from "../json/scan.ts";
import { EVENT_FIELD_NAMES, EventFields, typeAt, type ValueType } from "../stream/event-fields.ts";

/** One item of `events`. */
export class BatchItem {
  readonly fields = new EventFields();
  start = -1;
  end = -1;
}

/** Given to a scanner with a visit depth of `BATCH_DEPTH`; unknown members are passed over, of double ones the last counts. */
export class BatchLayout implements ValueVisitor {
  #bytes: Buffer = NO_BYTES;
  /** What the body is. */
  bodyType: ValueType = "absent";
  /** What its member `events` is. */
  eventsType: ValueType = "absent";
  /** How many items `events` has. */
  count = 0;
  #items: BatchItem[] = [];
  #openItems: BatchItem[] = [];
  #openCount = 0;
  #openItem = new BatchItem();

  begin(bytes: Buffer): void {
    this.#bytes = bytes;
    this.bodyType = "absent";
    this.eventsType = "absent";
    this.count = 0;
    this.#items = [];
    this.#openItems = [];
    this.#openCount = 0;
    this.#openItem = new BatchItem();
  }

  /** The first items of `events`, up to the most that a batch may have; lets go of them and of the body. */
  takeItems(): readonly BatchItem[] {
    const items = this.#items;
    this.#items = [];
    this.#bytes = NO_BYTES;
    return items;
  }

  value(depth: number, keyStart: number, keyEnd: number, start: number, end: number, normal: boolean): void {
    if (depth === 3) this.#endField(keyStart, keyEnd, start, end, normal);
    else if (depth === 2) this.#endItem(start, end);
    else if (depth === 1) this.#endMember(keyStart, keyEnd, start);
    else this.bodyType = typeAt(this.#bytes, start);
  }

  #endField(keyStart: number, keyEnd: number, start: number, end: number, normal: boolean): void {
    const field = keyStart < 0 ? -1 : EVENT_FIELD_NAMES.find(this.#bytes, keyStart, keyEnd);
    if (field >= 0) this.#openItem.fields.set(field, start, end, normal);
  }

  #endItem(start: number, end: number): void {
    this.#openCount++;
    if (this.#openCount > MAX_BATCH_EVENTS) {
      this.#openItem.fields.clear();
      return;
    }
    this.#openItem.start = start;
    this.#openItem.end = end;
    this.#openItems.push(this.#openItem);
    this.#openItem = new BatchItem();
  }

  #endMember(keyStart: number, keyEnd: number, start: number): void {
    if (keyStart >= 0 && BODY_NAMES.find(this.#bytes, keyStart, keyEnd) === 0) {
      this.eventsType = typeAt(this.#bytes, start);
      this.#items = this.#openItems;
      this.count = this.#openCount;
    }
    this.#openItems = [];
    this.#openCount = 0;
  }
}

/** Body, `events`, item, field. */
export const BATCH_DEPTH = 3;
const NO_BYTES = Buffer.alloc(0);
const BODY_NAMES = new NameTable(["events"]);
