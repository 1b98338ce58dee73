/** The program `penstock`. */
import { run } from "./cli/program.ts";

process.exitCode = await run(process.argv.slice(2));
// Something that failed halfway may hold a socket open; a program that is done must not hang.
setTimeout(() => process.exit(), 3_000).unref();
