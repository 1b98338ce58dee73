/** The exit code of a process that broke (`EXIT.failed`). */
const FAILED = 1;

/** What nothing caught ends the process, as it must: its state is unknown. But with a line in the log. */
export function dieLoudly(log: { fatal(fields: object, message: string): void }, leave: (code: number) => void): void {
  const die = (error: unknown): void => {
    log.fatal({ error: error instanceof Error ? error.stack : String(error) }, "unexpected failure");
    leave(FAILED);
  };
  process.on("uncaughtException", die);
  process.on("unhandledRejection", die);
}
