import { describeResumes } from "./resume.ts";

describeResumes({ events: 2_000, cuts: 20, kills: 2, limitMs: 60_000 });
