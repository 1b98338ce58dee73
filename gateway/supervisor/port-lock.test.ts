import { expect, it } from "vitest";
import { ListenError } from "../errors.ts";
import { PortLock } from "./port-lock.ts";

it.runIf(process.platform === "linux")("an address and port have one gateway, until it goes", async () => {
  const port = 20_000 + (process.pid % 10_000);
  const lock = await PortLock.take("127.0.0.1", port);
  await expect(PortLock.take("127.0.0.1", port)).rejects.toThrow(ListenError);
  await expect(PortLock.take("localhost", port)).rejects.toThrow("choose another port with --port");
  const other = await PortLock.take("127.0.0.2", port);
  lock!.release();
  const again = await PortLock.take("127.0.0.1", port);
  expect(again).not.toBeNull();
  again!.release();
  other!.release();
  expect(await PortLock.take("127.0.0.1", 0)).toBeNull();
});
