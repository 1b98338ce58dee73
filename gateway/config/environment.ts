/** Settings out of environment variables: `PENSTOCK_…`, then ZenML's names, which a deployment beside ZenML has set already. */
import type { Given, Layer } from "./given.ts";
import { didYouMean } from "./nearest.ts";
import type { Setting } from "./setting.ts";

/** Names with our prefix that are no settings: of the client commands, of the scripts and tests. */
const OTHERS = /^PENSTOCK_(CONFIG|URL|TOKEN|SOAK|TEST_.*|PROPERTY_.*)$/;

/**
 * Kubernetes tells every container of the Services beside it; one named `penstock` gives PENSTOCK_PORT=tcp://10.0.0.7:8080.
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const SERVICE_LINK = /^PENSTOCK_(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const SERVICE_LINK_VALUE = /^(tcp|udp|sctp):\/\//;

/** The strongest variable of each setting. An empty variable counts as unset. */
export function readEnvironment(settings: readonly Setting[], env: NodeJS.ProcessEnv): Layer {
  const given: Given[] = [];
  const problems: string[] = [];
  for (const setting of settings) {
    const own = env[setting.variable];
    if (own !== undefined && own !== "" && !SERVICE_LINK_VALUE.test(own)) {
      given.push({ setting, value: own, source: setting.variable });
      continue;
    }
    const variable = setting.zenml.find(({ name }) => (env[name] ?? "") !== "");
    if (variable === undefined) continue;
    try {
      const value = env[variable.name]!;
      given.push({ setting, value: variable.read?.(value) ?? value, source: variable.name });
    } catch (error) {
      problems.push(`${variable.name} ${(error as Error).message}`);
    }
  }
  return { given, problems: [...problems, ...unknownVariables(settings, env)] };
}

function unknownVariables(settings: readonly Setting[], env: NodeJS.ProcessEnv): string[] {
  const known = new Set(settings.map((setting) => setting.variable));
  return Object.entries(env)
    .filter(
      ([name, value]) => name.startsWith("PENSTOCK_") && !known.has(name) && !OTHERS.test(name) && !isServiceLink(name, value),
    )
    .map(([name]) => `${name} is no setting${didYouMean(name, known)}; unset it or correct its name`);
}

function isServiceLink(name: string, value: string | undefined): boolean {
  return SERVICE_LINK.test(name) || (name.endsWith("_PORT") && SERVICE_LINK_VALUE.test(value ?? ""));
}
