/** The program `penstock`. */
// Read once by uWebSockets.js, when it is loaded: a request's head may have 16 KiB instead of 4.
process.env["UWS_HTTP_MAX_HEADERS_SIZE"] ??= "16384";

const { run } = await import("./cli/program.ts");
process.exitCode = await run(process.argv.slice(2));
// Something that failed halfway may hold a socket open; a program that is done must not hang.
setTimeout(() => process.exit(), 3_000).unref();
