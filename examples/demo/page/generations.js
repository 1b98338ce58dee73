/** What the page knows of the run's generations, gathered from their events: a question, its answer, and what led to it. */
const KEPT = 12;

export class Generations {
  #byId = new Map(); // "answer-7" -> see emptyGeneration

  /** Takes an event of the demo's pipeline. Returns the id of its generation when that is new to the page, else null. */
  take({ kind, step_name: step, correlation_id: correlationId, payload }) {
    const id = `answer-${correlationId?.split("-").at(-1)}`;
    const isNew = !this.#byId.has(id);
    if (isNew) this.#byId.set(id, emptyGeneration());
    if (this.#byId.size > KEPT) this.#byId.delete(this.#byId.keys().next().value);
    const generation = this.#byId.get(id);
    const isAnswer = correlationId === id;
    if (payload.question) generation.question = payload.question;
    if (kind === "step") generation.steps.set(step, payload.status);
    if (kind === "progress") generation.steps.set(step, `${payload.done} of ${payload.total}`);
    if (kind === "document") generation.documents.push(payload.title);
    if (kind === "tool_call") generation.tool = `${payload.name}(${JSON.stringify(payload.arguments)})`;
    if (kind === "tool_result") generation.tool += ` → ${JSON.stringify(payload.result)}`;
    if (kind === "score") generation.scores.push(`${payload.name} ${payload.value.toFixed(2)}`);
    if (kind === "token" && isAnswer) generation.text += payload.text;
    if (kind === "token" && !isAnswer) generation.followUp += payload.text;
    if (kind === "usage" && isAnswer) generation.done = true;
    return isNew ? id : null;
  }

  get(id) {
    return this.#byId.get(id);
  }

  /** Oldest first. */
  get ids() {
    return [...this.#byId.keys()];
  }

  clear() {
    this.#byId.clear();
  }
}

function emptyGeneration() {
  return { question: "", text: "", steps: new Map(), documents: [], tool: "", scores: [], done: false, followUp: "" };
}
