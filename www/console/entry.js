// One log record on the page, and what folds into it.

import { count, make, moment, plain, said } from "./dom.js";
import { countsBehind, framesOf, place, renamed } from "./frames.js";

const LEVELS = { debug: "Debug", info: "Info", warn: "Warning", error: "Error" };
const SOURCES = {
  console: "Console",
  error: "Uncaught error",
  unhandledrejection: "Unhandled rejection",
  resource: "Resource",
  report: "Reported by the game",
};
/** Characters of a message on its line; all of it is in the details. */
const SHORT = 240;

/** What a player is called here: their id, in short. */
export const playerName = (player, self) => {
  if (!player) return "Unknown";
  return player === self ? "You" : `Player ${player.slice(-8)}`;
};

const fact = (name, ...value) => [make("dt", { textContent: name }), make("dd", {}, ...value)];

/** What is done once an element is seen. */
const whenSeen = new WeakMap();
const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    whenSeen.get(target)();
  }
});

/** Where something was: in the file as it was written, once a source map has told. */
const where = (one, record, { game, sources }) => {
  const shown = said(place(one, game), "place");
  const look = async () => {
    const source = await sources.find(one, record.deployment);
    if (!source) return;
    shown.title = shown.textContent;
    shown.textContent = plain(place(source, game));
  };
  return { shown, look };
};

/** The same in what somebody has opened. */
const whereNow = (...what) => {
  const { shown, look } = where(...what);
  look();
  return shown;
};

/** The same on an entry's line, of which a flood may pass by without a question. */
const whereSeen = (...what) => {
  const { shown, look } = where(...what);
  whenSeen.set(shown, look);
  watcher.observe(shown);
  return shown;
};

/** One frame; `caller` is the one below it, which knows by what name this one was called. */
const frame = (one, caller, record, view) => {
  const name = said(one.call || "(no name)", "caller");
  const look = async () => {
    const call = renamed(one.call, (await view.sources.find(caller, record.deployment))?.name);
    if (call === one.call) return;
    name.title = name.textContent;
    name.textContent = plain(call);
  };
  if (caller && one.call) look();
  return make("li", {}, name, " ", whereNow(one, record, view));
};

/** The frames of the game: that the runtime passed something on says nothing about it. */
const framesOfGame = (stack) => framesOf(stack).filter(({ isOurs }) => !isOurs);

/** Where a record itself says that it came up. */
const origin = ({ stack, url, line, column }) => ({
  file: url,
  line,
  column,
  isBehind: countsBehind(stack),
});

/** A deployment, as the list of deployments has it. */
const named = (id, { now }) => {
  const kept = now()?.deployments.find((one) => one.id === id);
  if (!kept) return ["One that is not kept"];
  return [moment(kept.created_at), ...(kept.current ? [", shown now"] : [])];
};

/** What a record says beyond its line. */
const details = (record, view) => {
  const { message, stack, url, metadata, player, deployment } = record;
  const parts = [];
  if (message.length > SHORT) parts.push(make("pre", {}, said(message)));
  const frames = stack ? framesOfGame(stack) : [];
  if (frames.length) {
    const list = frames.map((one, index) => frame(one, frames[index + 1], record, view));
    parts.push(make("ol", { className: "frames", ariaLabel: "Stack" }, ...list));
  } else if (stack && !framesOf(stack).length) {
    parts.push(make("pre", {}, said(stack)));
  }
  const facts = [
    fact("Source", SOURCES[record.source] ?? said(record.source)),
    fact("Player", playerName(player, view.self), " ", make("code", { textContent: player ?? "" })),
  ];
  if (url) facts.push(fact("Place", whereNow(origin(record), record, view)));
  if (deployment)
    facts.push(
      fact(
        "Deployment",
        ...named(deployment, view),
        " ",
        make("code", { textContent: deployment }),
      ),
    );
  parts.push(make("dl", { className: "facts" }, ...facts.flat()));
  if (metadata !== null) parts.push(make("pre", {}, said(JSON.stringify(metadata, null, 2))));
  return parts;
};

/** What makes two records one: all that is shown of them but the time. */
export const keyOf = ({
  level,
  source,
  message,
  stack,
  url,
  line,
  column,
  metadata,
  player,
  deployment,
}) =>
  JSON.stringify([level, source, message, stack, url, line, column, metadata, player, deployment]);

/** One or more equal records, as one item of the list. */
export class Entry {
  constructor(record, view, key = keyOf(record)) {
    this.key = key;
    this.record = record;
    this.withDay = Boolean(view.withDay);
    this.count = record.count;
    const { level, message, url } = record;
    this.time = moment(record.time, this.withDay);
    this.times = make("span", { className: "times" });
    const short = message.length > SHORT ? `${message.slice(0, SHORT)}…` : message;
    const head = make(
      "summary",
      {},
      make("span", { className: "level", textContent: LEVELS[level] ?? plain(level) }),
      " ",
      this.time,
      " ",
      this.times,
      " ",
      said(short, "text"),
    );
    if (level === "error" && url) head.append(" ", whereSeen(origin(record), record, view));
    const fold = make("details", {}, head);
    // Few of them are ever opened.
    fold.addEventListener("toggle", () => fold.append(...details(this.record, view)), {
      once: true,
    });
    this.element = make("li", { className: `entry ${LEVELS[level] ? level : ""}` }, fold);
    this.#tell();
  }

  /** Whether its details are shown. */
  get isOpen() {
    return this.element.firstChild.open;
  }

  /** Whether this record, whose key is `key`, is one more of these. */
  takes(record, key) {
    if (key !== this.key) return false;
    this.count += record.count;
    const time = moment(record.time, this.withDay);
    this.time.replaceWith(time);
    this.time = time;
    this.#tell();
    return true;
  }

  #tell() {
    const { count: number } = this;
    this.times.hidden = number < 2;
    this.times.replaceChildren(
      make("span", { ariaHidden: "true", textContent: `×${number}` }),
      make("span", { className: "aside", textContent: count(number, "time", "times") }),
    );
  }
}
