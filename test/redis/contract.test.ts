import { describeBrokerContract } from "../../gateway/broker/broker-contract.ts";
import { startRedis } from "../support/redis-servers.ts";
import { keyOf, startBroker, TAIL_ENTRIES } from "./redis-broker.ts";

describeBrokerContract("a standalone Redis", async () => {
  const server = await startRedis();
  const { broker, close } = await startBroker({ url: server.url });
  return {
    broker,
    tailEntries: TAIL_ENTRIES,
    countsMissed: false,
    trim: async (runId, keep) => void (await server.cli("XTRIM", keyOf(runId), "MAXLEN", `${keep}`)),
    delete: async (runId) => void (await server.cli("DEL", keyOf(runId))),
    close: async () => {
      await close();
      await server.stop();
    },
  };
});
