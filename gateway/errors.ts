/** Every error that a user or client can meet is one of these: a stable code, an HTTP status where it can reach a client, a way out. */
export class PenstockError extends Error {
  /** Stable, `PENSTOCK_…`; listed in docs/errors.md. */
  readonly code: string;
  /** HTTP status, when the error can reach a client. */
  readonly status: number | null;

  constructor(code: string, message: string, status: number | null = null, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    this.status = status;
  }
}

/** The configuration cannot be used; the message names the setting, its source and the way out. */
export class ConfigError extends PenstockError {
  constructor(message: string) {
    super("PENSTOCK_CONFIG", message);
  }
}

/** The broker could not be reached or refused us at the first start. */
export class BrokerStartError extends PenstockError {
  constructor(message: string, options?: ErrorOptions) {
    super("PENSTOCK_BROKER_START", `Stream broker startup probe failed: ${message}`, null, options);
  }
}

/** The broker does not answer. `count` and `lastId` tell what of a publish is known to be stored. */
export class BrokerUnavailableError extends PenstockError {
  readonly count: number;
  readonly lastId: string | null;

  constructor(message: string, count = 0, lastId: string | null = null, options?: ErrorOptions) {
    super("PENSTOCK_BROKER_UNAVAILABLE", message, 503, options);
    this.count = count;
    this.lastId = lastId;
  }
}

/** The same `Idempotency-Key` came with another body. */
export class IdempotencyConflictError extends PenstockError {
  constructor() {
    super(
      "PENSTOCK_IDEMPOTENCY_CONFLICT",
      "This Idempotency-Key was used with another body; use a new key for a new batch.",
      422,
    );
  }
}

/** A request that is refused: status and message go to the client as `{"detail": message}`. */
export class RequestError extends PenstockError {
  constructor(code: string, status: number, message: string) {
    super(code, message, status);
  }
}

/** An address cannot be listened on; the message names the flag that chooses another. */
export class ListenError extends PenstockError {
  /** `flag` is the one that chose the port, with its dashes. */
  constructor(flag: string, host: string, port: number, cause: NodeJS.ErrnoException) {
    const why =
      cause.code === "EADDRINUSE"
        ? "is taken by another program; choose another port"
        : `cannot be listened on (${cause.code ?? cause.message}); choose another address or port`;
    const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    super("PENSTOCK_LISTEN", `${address} ${why} with ${flag}.`, null, { cause });
  }
}
