import { describeStalledReaders } from "./stalled.ts";

describeStalledReaders({ stalled: 20, stallSeconds: 20 });
