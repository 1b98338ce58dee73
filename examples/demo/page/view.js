/** All that touches the document. Text goes in as text, never as markup. */

const ROWS = 200;
const GENERATIONS = 12;
const STATES = {
  connecting: "connecting",
  live: "live",
  cut: "cut by you",
  waiting: "connection lost, will be back",
  resuming: "resuming",
  ended: "the run has ended",
  refused: "refused",
};

const element = (id) => document.getElementById(id);

export class View {
  onCut = () => {};
  onFilter = () => {};
  #generations = new Map(); // correlation id -> { question, text, steps, done, followUp }
  #newRows = [];
  #drawing = null;
  #model = null;
  #note = null;

  constructor({ runId, kinds, steps }) {
    element("run").textContent = runId;
    element("cut").addEventListener("click", () => this.onCut());
    element("generation").addEventListener("change", () => this.#draw());
    for (const [place, values] of [
      ["kinds", kinds],
      ["steps", steps],
    ]) {
      element(place).append(...values.map((value) => chip(value)));
    }
    const form = element("filters").querySelector("form");
    form.addEventListener("change", () => this.#filterChanged());
    form.addEventListener("reset", () => setTimeout(() => this.#filterChanged()));
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  state(name, detail) {
    const state = element("state");
    state.dataset.state = name;
    state.textContent = detail ? `${STATES[name]}: ${detail}` : STATES[name];
    element("cut").disabled = name !== "live";
  }

  /** Begins anew, as after a change of filter. */
  reset() {
    this.#generations.clear();
    this.#newRows = [];
    this.#note = null;
    element("log").replaceChildren();
    element("generation").replaceChildren(new Option("newest", ""));
    this.#draw();
  }

  figures(model) {
    this.#model = model;
    this.#drawSoon();
  }

  event(id, event, replayed) {
    this.#collect(event);
    this.#push(eventRow(id, event, replayed));
  }

  /** A line of the page's own among the events: a cut, a resume, a gap. */
  note(kind, text) {
    const row = document.createElement("li");
    row.className = `note ${kind}`;
    row.textContent = text;
    this.#note = { row, text };
    this.#push(row);
  }

  amendNote(text) {
    if (this.#note) this.#note.row.textContent = `${this.#note.text} ${text}`;
  }

  #push(row) {
    this.#newRows.push(row);
    if (this.#newRows.length > ROWS) this.#newRows.shift();
    this.#drawSoon();
  }

  #collect({ kind, step_name: step, correlation_id: correlationId, payload }) {
    const number = correlationId?.split("-").at(-1);
    const isAnswer = correlationId?.startsWith("answer-");
    const answerId = `answer-${number}`;
    let generation = this.#generations.get(answerId);
    if (!generation) {
      generation = { question: "", text: "", steps: new Map(), done: false, followUp: "" };
      this.#generations.set(answerId, generation);
      element("generation").options[0].after(new Option(answerId, answerId));
      if (this.#generations.size > GENERATIONS) {
        this.#generations.delete(this.#generations.keys().next().value);
        element("generation").options[GENERATIONS + 1].remove();
      }
      const choice = element("correlation");
      for (const id of [`follow-up-${number}`, answerId]) {
        if (![...choice.options].some((option) => option.value === id)) choice.options[0].after(new Option(id, id));
      }
      while (choice.options.length > 2 * GENERATIONS && !choice.options[choice.options.length - 1].selected)
        choice.remove(choice.options.length - 1);
    }
    if (payload.question) generation.question = payload.question;
    if (kind === "step") generation.steps.set(step, payload.status);
    if (kind === "progress") generation.steps.set(step, `${payload.done} of ${payload.total}`);
    if (kind === "token" && isAnswer) generation.text += payload.text;
    if (kind === "token" && !isAnswer) generation.followUp += payload.text;
    if (kind === "usage" && isAnswer) generation.done = true;
  }

  #filterChanged() {
    const query = new URLSearchParams();
    for (const box of element("kinds").querySelectorAll("input:checked")) query.append("kinds", box.value);
    for (const box of element("steps").querySelectorAll("input:checked")) query.append("step_names", box.value);
    if (element("correlation").value) query.append("correlation_ids", element("correlation").value);
    element("filter-summary").textContent = [...query.values()].join(", ") || "none";
    this.onFilter(query);
  }

  /** Twenty times a second at most: a resume brings thousands of events at once. */
  #drawSoon() {
    this.#drawing ??= setTimeout(() => {
      this.#drawing = null;
      this.#draw();
    }, 50);
  }

  #draw() {
    const log = element("log");
    if (this.#newRows.length > 0) log.prepend(...this.#newRows.reverse());
    this.#newRows = [];
    while (log.childElementCount > ROWS) log.lastElementChild.remove();
    this.#drawGeneration();
    if (this.#model) drawFigures(this.#model);
  }

  #drawGeneration() {
    const id = element("generation").value || [...this.#generations.keys()].at(-1);
    const generation = this.#generations.get(id);
    element("question").textContent = generation?.question || "\u00a0";
    const text = element("text");
    text.dataset.generation = id ?? "";
    text.dataset.done = String(generation?.done ?? false);
    text.textContent = generation?.text ?? "";
    element("follow-up").hidden = !generation?.followUp;
    element("follow-up").textContent = generation?.followUp ?? "";
    const steps = [...(generation?.steps ?? [])].map(([name, status]) => {
      const item = document.createElement("li");
      item.dataset.status = status;
      item.textContent = status === "finished" || status === "started" ? name : `${name} ${status}`;
      return item;
    });
    element("steps-done").replaceChildren(...steps);
  }
}

function drawFigures(model) {
  element("position").textContent = model.position || "–";
  element("events-seen").textContent = model.events;
  element("tokens-seen").textContent = model.tokens;
  element("resumes").textContent = model.resumes;
  element("gaps").textContent = model.gaps;
  const { lost, doubled } = model.sequence;
  element("check").textContent = `${lost} lost, ${doubled} doubled`;
  element("check").dataset.ok = String(lost + doubled === 0);
}

function chip(value) {
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.value = value;
  label.append(box, value);
  return label;
}

function eventRow(id, event, replayed) {
  const row = document.createElement("li");
  row.dataset.kind = event.kind;
  if (replayed) row.classList.add("replayed");
  row.title = id;
  const time = new Date(Number(id.split("-")[0])).toLocaleTimeString([], { hour12: false });
  const source = [event.step_name, event.correlation_id].filter(Boolean).join(" · ");
  for (const [name, text] of [
    ["time", time],
    ["kind", event.kind],
    ["what", summaryOf(event)],
    ["source", source],
  ]) {
    const cell = document.createElement("span");
    cell.className = name;
    cell.textContent = text;
    row.append(cell);
  }
  return row;
}

function summaryOf({ kind, index, payload }) {
  switch (kind) {
    case "token":
      return `${index} ${JSON.stringify(payload.text)}`;
    case "step":
      return payload.status;
    case "progress":
      return `${payload.done} of ${payload.total}`;
    case "document":
      return `${payload.title} (${payload.score.toFixed(2)})`;
    case "tool_call":
      return `${payload.name}(${JSON.stringify(payload.arguments)})`;
    case "tool_result":
      return `${payload.name} → ${JSON.stringify(payload.result)}`;
    case "usage":
      return `${payload.tokens} tokens`;
    case "score":
      return `${payload.name} ${payload.value.toFixed(2)}`;
    default:
      return JSON.stringify(payload);
  }
}
