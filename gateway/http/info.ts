/** `GET /api/v1/info`: what ZenML's client asks of a server before it talks to it. */
import { parseUuid } from "../../protocol/run-id.ts";

export interface GatewayInfo {
  readonly deploymentId: string | null;
  /** Penstock's own version. */
  readonly version: string;
}

/** The version of ZenML's server API that the publish and stream paths speak: its client compares it with its own, and warns. */
export const ZENML_VERSION = "0.98.0";

/**
 * `id` must be a UUID for that client, and absent rather than null; a deployment id of another shape stands in `deployment_id` alone.
 * `authScheme` is one of ZenML's names.
 */
export function infoDocument(info: GatewayInfo, authScheme: string): Record<string, string | null> {
  const uuid = info.deploymentId === null ? null : parseUuid(info.deploymentId);
  return {
    ...(uuid === null ? {} : { id: uuid }),
    version: ZENML_VERSION,
    auth_scheme: authScheme,
    deployment_id: info.deploymentId,
    penstock_version: info.version,
  };
}
