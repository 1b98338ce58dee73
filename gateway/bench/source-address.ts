/** From which address a reader connects: one address has some 28,000 ports (net.ipv4.ip_local_port_range) to one other. */
import { isIPv4 } from "node:net";

export const CONNECTIONS_PER_ADDRESS = 25_000;
/** Fewer leave enough ports for other programs, another bench among them. */
const FEW = 5_000;

/** Undefined: the kernel's choice. Each process has addresses of its own, so that several can load one gateway. */
export function sourceAddress(host: string, index: number, count: number, pid = process.pid): string | undefined {
  if (count <= FEW || !hasManyAddresses(host)) return undefined;
  return `127.${1 + (pid % 250)}.${(pid >> 8) % 256}.${1 + Math.floor(index / CONNECTIONS_PER_ADDRESS)}`;
}

/** All of 127.0.0.0/8 is this machine on Linux; elsewhere, and of IPv6, one address is. */
export function hasManyAddresses(host: string): boolean {
  return process.platform === "linux" && isIPv4(host) && host.startsWith("127.");
}
