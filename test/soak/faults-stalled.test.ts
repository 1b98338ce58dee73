/** The long form of test/faults/stalled.test.ts. */
import { describeStalledReaders } from "../faults/stalled.ts";

describeStalledReaders({ stalled: 200, stallSeconds: 90 });
