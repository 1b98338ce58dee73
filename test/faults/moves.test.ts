import { describeMoves } from "./moves.ts";

describeMoves({ runs: 8, rounds: 1, goneSeconds: 5 });
