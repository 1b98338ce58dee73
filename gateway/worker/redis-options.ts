/** The settings of `redis` as the broker takes them, with what stands in files. */
import { readFileSync } from "node:fs";
import type { RedisOptions } from "../broker/redis/target.ts";
import type { GatewayConfig } from "../config.ts";
import { ConfigError } from "../errors.ts";

/** Throws ConfigError, which names the setting whose file cannot be read. */
export function redisOptions(redis: GatewayConfig["redis"]): RedisOptions {
  const { usernameFile, passwordFile, tls, ...rest } = redis;
  return {
    ...rest,
    username: usernameFile === null ? redis.username : readLine("redis.usernameFile", usernameFile),
    password: passwordFile === null ? redis.password : readLine("redis.passwordFile", passwordFile),
    tls: {
      ca: readPem("redis.tls.caFile", tls.caFile),
      cert: readPem("redis.tls.certFile", tls.certFile),
      key: readPem("redis.tls.keyFile", tls.keyFile),
      serverName: tls.serverName,
    },
  };
}

function readLine(setting: string, file: string): string {
  return read(setting, file).replace(/\r?\n$/, "");
}

function readPem(setting: string, file: string | null): string | null {
  return file === null ? null : read(setting, file);
}

function read(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${setting}: the file ${file} cannot be read (${code}); correct its path or rights.`);
  }
}
