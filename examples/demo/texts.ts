/** What the demo's pretended model is asked and answers. */

export interface Talk {
  readonly question: string;
  readonly answer: string;
  /** The question that the model proposes next, written while the answer still runs. */
  readonly followUp: string;
  readonly documents: readonly string[];
  readonly tool: { readonly name: string; readonly arguments: object; readonly result: object };
}

export const TALKS: readonly Talk[] = [
  {
    question: "What is a penstock?",
    answer:
      "A penstock is the pipe that brings water from a reservoir down to a turbine. It is closed all the way, so the weight of the water above " +
      "becomes pressure below, and nothing is spilled between the two ends. A gate at the top decides how much may flow.\n\n" +
      "The hard part is not the flow but its changes. When a valve closes too quickly, the moving column has nowhere to go and a shock runs back " +
      "up the pipe: engineers call it water hammer. So good plants close slowly, and give the surge a tower to rise in. " +
      "The name fits a gateway for events rather well.",
    followUp: "How long does a gate take to close without water hammer?",
    documents: ["Pipes under pressure", "The surge tower, drawn to scale", "A valley and its power station"],
    tool: { name: "pressure_at", arguments: { head_m: 120 }, result: { bar: 11.8 } },
  },
  {
    question: "Why does an event stream need a position?",
    answer:
      "Because connections end, and readers come back. Trains enter tunnels, laptops sleep, servers are replaced while people watch. " +
      "If each event carries an id, the reader needs to remember just one: the last it has seen. On its return it says so, and the server goes on " +
      "behind that place, first from memory, then from the log.\n\n" +
      "Two things must never happen. Nothing may come twice, for a doubled word looks like a stutter. And nothing may be missing in silence: when the log " +
      "has forgotten what lies between, an honest server says which part → from where, to where, and how much.",
    followUp: "What should a page do when it meets a gap?",
    documents: ["Server-sent events, read slowly", "Ids that only rise", "What a reader may forget"],
    tool: {
      name: "lookup_header",
      arguments: { name: "Last-Event-ID" },
      result: { sent_by: "the reader", when: "on each reconnect" },
    },
  },
  {
    question: "How do I keep a sourdough starter alive while I travel?",
    answer:
      "Feed it well, let it rise for an hour, and put it in the coldest corner of the fridge. Cold does not kill the yeast, it only slows it to a crawl, " +
      "and two weeks without food are no trouble at all.\n\n" +
      "For a longer journey, make it stiff: twice as much flour as water, kneaded into a ball, rolled in more flour. It keeps for a month or two. " +
      "For a year, spread a thin layer on paper, dry it, and break it into flakes; a jar of those survives almost anything. Back home, stir in lukewarm water " +
      "and flour, wait a day, feed again. The café smell tells you when it is ready.",
    followUp: "Can I freeze the flakes as well?",
    documents: ["Flour, water, patience", "Yeast in the cold", "Drying and keeping"],
    tool: { name: "convert", arguments: { grams: 50, to: "tablespoons" }, result: { tablespoons: 6.3 } },
  },
  {
    question: "Why is the sea salty, but not the rivers?",
    answer:
      "Rivers are salty too, only so little that we cannot taste it. Rain is slightly sour, it gnaws at rock, and every stream carries a trace of what it " +
      "dissolved down to the sea.\n\n" +
      "There the water leaves again, as vapour, and the salt stays. Repeat that for some hundreds of millions of years and each litre holds about 35 grams. " +
      "It does not grow for ever: salt is buried in mud, pressed into rock and lifted into mountains, where the rain begins its work anew. A lake without " +
      "an outlet takes the same path much faster, which is why the Dead Sea lets you float.",
    followUp: "How salty is the rain at the coast?",
    documents: ["The long way of a grain of salt", "Lakes without an outlet"],
    tool: { name: "salinity", arguments: { place: "Baltic Sea, north" }, result: { grams_per_litre: 3.5 } },
  },
  {
    question: "Give me a plan for learning to draw in a month.",
    answer:
      "First week: lines. Fill a page a day with straight ones, curves and circles, from the shoulder, without a ruler. It is dull and it works.\n\n" +
      "Second week: boxes. Draw cups, books and chairs as boxes in space, light pencil, then find the object inside. Third week: values. Squint, and allow " +
      "yourself three tones only; most drawings fail in the light, not in the line.\n\n" +
      "Last week: things that move. People in a café, birds, your own left hand. Give each thirty seconds, then two minutes, then ten. " +
      "Date every page. On day thirty, draw the cup of day eight again and put both side by side.",
    followUp: "Which pencil should I buy first?",
    documents: ["Thirty pages", "Seeing three tones", "Hands are boxes"],
    tool: { name: "calendar", arguments: { days: 30 }, result: { sessions: 30, minutes_each: 20 } },
  },
];
