/** A certificate authority of our own, a server's and a client's certificate, made by openssl. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly clientCert: string;
  readonly clientKey: string;
  remove(): Promise<void>;
}

/** Makes them for `names` (DNS names and addresses); valid for a day. */
export async function createCertificates(names: readonly string[] = ["localhost", "127.0.0.1"]): Promise<Certificates> {
  const directory = await mkdtemp(join(tmpdir(), "penstock-tls-"));
  const path = (name: string): string => join(directory, name);
  const openssl = (...args: string[]) => run("openssl", args, { cwd: directory });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1", "-subj", "/CN=Test CA");
  const alternatives = names.map((name) => (/^[0-9.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(",");
  for (const role of ["server", "client"]) {
    await openssl("req", ...newKey, "-keyout", `${role}.key`, "-out", `${role}.csr`, "-subj", `/CN=${role}`);
    await writeFile(
      path(`${role}.ext`),
      role === "server" ? `subjectAltName=${alternatives}\n` : "extendedKeyUsage=clientAuth\n",
    );
    const signer = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", `${role}.ext`];
    await openssl("x509", "-req", "-in", `${role}.csr`, "-out", `${role}.pem`, ...signer);
  }
  return {
    ca: path("ca.pem"),
    cert: path("server.pem"),
    key: path("server.key"),
    clientCert: path("client.pem"),
    clientKey: path("client.key"),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
