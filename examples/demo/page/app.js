/** The demo's page: follows the run, survives cuts, and shows what it saw. */
import { AnswerError, readStream } from "./reader.js";
import { SequenceCheck } from "./sequence.js";
import { View } from "./view.js";

const CUT_MS = 2000;

const settings = await loadSettings();
const view = new View(settings);
let model = emptyModel();
let filter = new URLSearchParams();
let current = null; // the open connection: { abort, cut }
let generationOfStreams = 0; // a new filter makes the loop of the old one end

view.onCut = () => current?.cut();
view.onFilter = (query) => {
  filter = query;
  model = emptyModel();
  view.reset();
  restart();
};
restart();

function restart() {
  current?.abort();
  follow(++generationOfStreams);
}

/** Opens the stream again and again, each time behind the last id, until the run ends or another filter takes over. */
async function follow(mine) {
  const active = () => mine === generationOfStreams;
  let retryMs = 1000;
  while (active()) {
    const controller = new AbortController();
    let wasCut = false;
    current = {
      abort: () => controller.abort(),
      cut: () => {
        wasCut = true;
        controller.abort();
      },
    };
    view.state(model.position ? "resuming" : "connecting");
    try {
      await readStream(streamUrl(), {
        lastEventId: model.position,
        signal: controller.signal,
        onOpen: () => opened(),
        onFrame: (frame) => active() && take(frame),
        onRetry: (ms) => {
          retryMs = ms;
        },
      });
      if (model.ended) return view.state("ended");
    } catch (error) {
      if (!active()) return;
      const hopeless = error instanceof AnswerError && error.status < 500 && error.status !== 429;
      if (hopeless) return view.state("refused", error.message);
    }
    if (!active()) return;
    if (wasCut) view.note("cut", `You cut the connection behind ${model.position || "nothing"}. Back in ${CUT_MS / 1000} s.`);
    view.state(wasCut ? "cut" : "waiting");
    await new Promise((resolve) => setTimeout(resolve, wasCut ? CUT_MS : retryMs));
  }
}

function opened() {
  view.state("live");
  if (!model.position) return;
  model.resumes++;
  model.resumedAt = Date.now();
  model.replayed = 0;
  view.note("resumed", `Resumed behind ${model.position}.`);
}

function take({ id, event, data }) {
  model.position = id;
  const body = JSON.parse(data);
  if (event === "gap") takeGap(body);
  else if (event === "end") model.ended = true;
  else if (event === "error") view.note("gap", `The gateway ended the stream: ${body.reason}.`);
  else if (event !== "cursor") takeEvent(id, body);
  view.figures(model);
}

function takeGap({ reason, from, to, missed }) {
  model.gaps++;
  view.note("gap", `Gap, ${reason}: ${missed ?? "unknown how many"} events between ${from ?? "the start"} and ${to ?? "now"}.`);
}

function takeEvent(id, event) {
  model.events++;
  check(event);
  // The page and the gateway share one clock here, so an older id was published while the page was away.
  const replayed = Number(id.split("-")[0]) < model.resumedAt;
  if (replayed) view.amendNote(`${++model.replayed} events came from history.`);
  view.event(id, event, replayed);
}

function check({ kind, step_name: step, correlation_id: correlationId, index, payload }) {
  if (kind === "token") {
    model.tokens++;
    model.sequence.token(correlationId, index);
  } else if (kind === "step" && payload.status === "started" && (step === "generate" || step === "suggest")) {
    model.sequence.begin(correlationId);
  } else if (kind === "usage") {
    model.sequence.finish(correlationId, payload.tokens);
  }
}

function emptyModel() {
  return {
    position: "",
    events: 0,
    tokens: 0,
    resumes: 0,
    gaps: 0,
    ended: false,
    resumedAt: 0,
    replayed: 0,
    sequence: new SequenceCheck(),
  };
}

function streamUrl() {
  const query = filter.toString();
  return `${settings.gateway}/api/v1/runs/${settings.runId}/events/stream${query ? `?${query}` : ""}`;
}

/** The page may be asked for before the gateway listens. */
async function loadSettings() {
  for (;;) {
    const response = await fetch("settings.json");
    if (response.ok) return await response.json();
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
