/** The long form of test/faults/outage.test.ts. */
import { describeOutages } from "../faults/outage.ts";

describeOutages({ stopped: 30, killed: 60, stale: 30, readOnly: 30 });
