/** From a path to what stands there. */

export type RouteName = "events" | "stream" | "end" | "info" | "openapi";

export interface Match {
  readonly route: RouteName;
  /** The run's name as it stands in the path, still percent-encoded; "" for routes without one. */
  readonly rawRunId: string;
}

/** `prefix` is "" or begins with a slash and ends with none. A path that is not exactly one of these is null: 404. */
export function createRouter(prefix: string): (path: string) => Match | null {
  const runs = `${prefix}/api/v1/runs/`;
  const info = `${prefix}/api/v1/info`;
  const openapi = `${prefix}/openapi.json`;
  return (path) => {
    if (path.startsWith(runs)) {
      const slash = path.indexOf("/", runs.length);
      // Without a name there is no run, whatever follows.
      if (slash <= runs.length) return null;
      const route = RUN_ROUTES.get(path.slice(slash));
      return route === undefined ? null : { route, rawRunId: path.slice(runs.length, slash) };
    }
    if (path === info) return { route: "info", rawRunId: "" };
    if (path === openapi) return { route: "openapi", rawRunId: "" };
    return null;
  };
}

/** A producer whose library adds a slash must not meet 404 or 405: ZenML's stops publishing for good at the latter. */
const RUN_ROUTES: ReadonlyMap<string, RouteName> = new Map([
  ["/events", "events"],
  ["/events/", "events"],
  ["/events/stream", "stream"],
  ["/end", "end"],
]);

/** The methods of each route, as `Allow` lists them (RFC 9110 10.2.1). */
export const ALLOW: Readonly<Record<RouteName, string>> = {
  events: "GET, HEAD, POST, OPTIONS",
  stream: "GET, HEAD, OPTIONS",
  end: "POST, OPTIONS",
  info: "GET, HEAD, OPTIONS",
  openapi: "GET, HEAD, OPTIONS",
};

/** Whether a route takes a method. */
export function allows(route: RouteName, method: string): boolean {
  return METHODS[route].includes(method);
}

const METHODS: Readonly<Record<RouteName, readonly string[]>> = {
  events: ALLOW.events.split(", "),
  stream: ALLOW.stream.split(", "),
  end: ALLOW.end.split(", "),
  info: ALLOW.info.split(", "),
  openapi: ALLOW.openapi.split(", "),
};
