/** All that touches the document. Text goes in as text, never as markup. */
import { hidesAllTokens, hidesTokensOf } from "./filter.js";
import { Generations } from "./generations.js";

const ROWS = 200;
/** Correlation ids to choose from: two a generation. */
const CHOICES = 24;
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
  #generations = new Generations();
  #filter = new URLSearchParams();
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

  #collect(event) {
    const isNew = this.#generations.take(event);
    if (isNew === null) return;
    const choice = element("generation");
    choice.options[0].after(new Option(isNew, isNew));
    while (choice.options.length > this.#generations.ids.length + 1) choice.options[choice.options.length - 1].remove();
    const ids = element("correlation");
    for (const id of [isNew.replace("answer", "follow-up"), isNew]) {
      if (![...ids.options].some((option) => option.value === id)) ids.options[0].after(new Option(id, id));
    }
    while (ids.options.length > CHOICES && !ids.options[ids.options.length - 1].selected) ids.remove(ids.options.length - 1);
  }

  #filterChanged() {
    const query = new URLSearchParams();
    for (const box of element("kinds").querySelectorAll("input:checked")) query.append("kinds", box.value);
    for (const box of element("steps").querySelectorAll("input:checked")) query.append("step_names", box.value);
    if (element("correlation").value) query.append("correlation_ids", element("correlation").value);
    element("filter-summary").textContent = [...query.values()].join(", ") || "none";
    this.#filter = query;
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
    if (this.#model) drawFigures(this.#model, hidesAllTokens(this.#filter));
  }

  #drawGeneration() {
    const { ids } = this.#generations;
    const id = element("generation").value || ids.at(-1);
    const generation = this.#generations.get(id);
    element("question").textContent = generation?.question || "\u00a0";
    const hidden = hidesTokensOf("generate", this.#filter);
    element("hidden-text").hidden = !hidden;
    const text = element("text");
    text.hidden = hidden;
    text.dataset.generation = id ?? "";
    text.dataset.done = String(generation?.done ?? false);
    text.textContent = generation?.text ?? "";
    const steps = [...(generation?.steps ?? [])].map(([name, status]) => {
      const item = document.createElement("li");
      item.dataset.status = status;
      item.textContent = status === "finished" || status === "started" ? name : `${name} ${status}`;
      return item;
    });
    element("steps-done").replaceChildren(...steps);
    drawFact("documents", generation?.documents.join(" · "));
    drawFact("tool", generation?.tool);
    drawFact("scores", generation?.scores.join(" · "));
    drawFact("follow-up", generation?.followUp);
    this.#drawEarlier(ids.slice(0, Math.max(0, ids.indexOf(id))).reverse());
  }

  /** The generations before the one that is shown, newest first, each to be chosen. Drawn anew only where they differ: one may have the focus. */
  #drawEarlier(ids) {
    const list = element("earlier");
    const shown = ids.filter((id) => this.#generations.get(id).question !== "");
    element("earlier-title").hidden = shown.length === 0;
    if (list.dataset.ids === shown.join()) return;
    list.dataset.ids = shown.join();
    const items = shown.map((id) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = this.#generations.get(id).question;
      button.addEventListener("click", () => {
        element("generation").value = id;
        this.#draw();
      });
      const item = document.createElement("li");
      item.append(button);
      return item;
    });
    list.replaceChildren(...items);
  }
}

function drawFigures(model, isFiltered) {
  element("position").textContent = model.position || "–";
  element("events-seen").textContent = model.events;
  element("tokens-seen").textContent = model.tokens;
  element("resumes").textContent = model.resumes;
  element("gaps").textContent = model.gaps;
  const { lost, doubled } = model.sequence;
  const isWhole = lost + doubled === 0;
  element("check").textContent = isFiltered ? "filtered" : `${lost} lost, ${doubled} doubled`;
  element("check").dataset.state = isFiltered ? "unknown" : isWhole ? "good" : "bad";
}

/** A line of the generation's details, which is there only when it says something. */
function drawFact(name, text) {
  element(name).textContent = text ?? "";
  element(name).parentElement.hidden = !text;
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
