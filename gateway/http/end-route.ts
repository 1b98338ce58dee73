/** `POST …/end`: the run is over. Takes no body; saying it again changes nothing. */
import { BrokerUnavailableError } from "../errors.ts";
import { jsonAnswer } from "./answer.ts";
import type { RunCall } from "./run-call.ts";

/** Rejects with BrokerUnavailableError. */
export async function endRun({ exchange, runId, broker }: RunCall): Promise<void> {
  let lastId: string;
  try {
    ({ lastId } = await broker.end(runId));
  } catch (error) {
    if (!(error instanceof BrokerUnavailableError)) throw error;
    throw new BrokerUnavailableError("The broker did not store the end; try again.", 0, null, { cause: error });
  }
  exchange.answer(jsonAnswer(200, { last_id: lastId }));
}
