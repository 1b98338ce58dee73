/** docs/configuration.md, out of the declarations in gateway/config.ts. */
import { SETTINGS } from "../../gateway/config/load.ts";
import type { Setting } from "../../gateway/config/setting.ts";

const INTRODUCTION = `# Configuration

<!-- Made by scripts/docs.ts from gateway/config.ts; edit that. -->

A setting's value is its flag's; else its variable's; else that of ZenML's variable of the same meaning, the first in the table that is set; else the file's
(\`--config FILE\` or \`PENSTOCK_CONFIG\`: YAML or JSON); else the default. An empty variable counts as unset. Unknown keys, flags and \`PENSTOCK_…\` variables are refused,
with the nearest right name. \`penstock config check\` says what counts and where it came from; \`penstock config schema\` prints a JSON Schema for editors.

Units stand in the names. Numbers of bytes may be quantities: \`512Ki\`, \`4Mi\`, \`1Gi\`. \`true\`, \`yes\`, \`on\`, \`1\` and \`false\`, \`no\`, \`off\`, \`0\` are what they say.
Lists in variables and flags stand between commas. Paths are relative to the working directory.

\`\`\`yaml
# gateway.yaml
broker: redis
deploymentId: live
redis:
  nodes: [redis-0.example.org:6379, redis-1.example.org:6379]
  passwordFile: /run/secrets/redis/password
auth:
  mode: jwt
  jwt: {jwksUrl: "https://id.example.org/jwks.json", issuer: "https://id.example.org", audience: penstock}
\`\`\`
`;

const TITLES: Readonly<Record<string, string>> = {
  "": "Serving",
  redis: "The Redis broker",
  memory: "The memory broker",
  streaming: "Streams",
  flow: "Flow",
  auth: "Who may do what",
  cors: "Pages of other origins",
  overload: "Overload",
  drain: "The end",
  log: "The log",
};

export function configurationPage(): string {
  const groups = new Map<string, Setting[]>();
  for (const setting of SETTINGS) {
    const group = setting.path.length === 1 ? "" : setting.path[0]!;
    groups.set(group, [...(groups.get(group) ?? []), setting]);
  }
  return [INTRODUCTION, ...[...groups].map(([group, settings]) => section(group, settings))].join("\n");
}

function section(group: string, settings: readonly Setting[]): string {
  const head = "| setting | default | value | meaning | flag, variables |\n|---|---|---|---|---|";
  return `## ${TITLES[group] ?? group}\n\n${head}\n${settings.map(row).join("\n")}\n`;
}

function row(setting: Setting): string {
  const names = [...(setting.flag === null ? [] : [setting.flag]), setting.variable, ...setting.zenml.map(({ name }) => name)];
  const meaning = setting.about + (setting.secret ? " Never shown or logged." : "");
  const cells = [`\`${setting.name}\``, preset(setting), setting.expects, meaning, names.map((name) => `\`${name}\``).join(", ")];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function preset(setting: Setting): string {
  const value = setting.default;
  if (setting.required) return "needed in its group";
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return "none";
  if (/bytes$/i.test(setting.name)) return `\`${quantity(value as number)}\``;
  return `\`${setting.written(value)}\``;
}

function quantity(bytes: number): string {
  return bytes % 2 ** 20 === 0 ? `${bytes / 2 ** 20}Mi` : String(bytes);
}
