import { describeOutages } from "./outage.ts";

describeOutages({ stopped: 8, killed: 6, stale: 6, readOnly: 4 });
