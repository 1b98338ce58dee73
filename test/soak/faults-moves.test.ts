/** The long form of test/faults/moves.test.ts. */
import { describeMoves } from "../faults/moves.ts";

describeMoves({ runs: 60, rounds: 5, goneSeconds: 60 });
