/** The long form of test/faults/resume.test.ts. */
import { describeResumes } from "../faults/resume.ts";

describeResumes({ events: 20_000, cuts: 200, kills: 20, limitMs: 600_000 });
