// One log record on the page, and what folds into it.

import { count, make, moment, plain, said } from "./dom.js";
import { countsBehind, framesOf, place, renamed } from "./frames.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Inside } from "./dom.js" */
/** @import { Frame } from "./frames.js" */
/** @import { Sources } from "./source_map.js" */

/** @type {Record<string, string>} */
const LEVELS = { debug: "Debug", info: "Info", warn: "Warning", error: "Error" };
/** @type {Record<string, string>} */
const SOURCES = {
  console: "Console",
  error: "Uncaught error",
  unhandledrejection: "Unhandled rejection",
  resource: "Resource",
  report: "Reported by the game",
};
/**
 * What the records of a log have in common.
 *
 * @typedef {object} View
 * @property {string} game the game's address
 * @property {string} self who looks
 * @property {Sources} sources
 * @property {() => Schemas["Environment"] | undefined} now what the environment is like now
 * @property {boolean} [withDay] whether moments are shown with their day
 */

/** @typedef {Pick<Frame, "file" | "line" | "column" | "isBehind">} Spot A place in a script. */

/** Characters of a message on its line; all of it is in the details. */
const SHORT = 240;

/**
 * What a player is called here: their id, in short.
 *
 * @param {string | null} player
 * @param {string} self
 */
export const playerName = (player, self) => {
  if (!player) return "Unknown";
  return player === self ? "You" : `Player ${player.slice(-8)}`;
};

/**
 * @param {string} name
 * @param {...Inside} value
 */
const fact = (name, ...value) => [make("dt", { textContent: name }), make("dd", {}, ...value)];

/**
 * What is done once an element is seen.
 *
 * @type {WeakMap<Element, () => void>}
 */
const whenSeen = new WeakMap();
const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    whenSeen.get(target)?.();
  }
});

/**
 * Where something was: in the file as it was written, once a source map has told.
 *
 * @param {Spot} one
 * @param {Schemas["LogRecord"]} record
 * @param {View} view
 */
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

/**
 * The same in what somebody has opened.
 *
 * @param {Parameters<typeof where>} what
 */
const whereNow = (...what) => {
  const { shown, look } = where(...what);
  look();
  return shown;
};

/**
 * The same on an entry's line, of which a flood may pass by without a question.
 *
 * @param {Parameters<typeof where>} what
 */
const whereSeen = (...what) => {
  const { shown, look } = where(...what);
  whenSeen.set(shown, look);
  watcher.observe(shown);
  return shown;
};

/**
 * One frame; `caller` is the one below it, which knows by what name this one was called.
 *
 * @param {Frame} one
 * @param {Frame | undefined} caller
 * @param {Schemas["LogRecord"]} record
 * @param {View} view
 */
const frame = (one, caller, record, view) => {
  const name = said(one.call || "(no name)", "caller");
  const look = async (/** @type {Frame} */ below) => {
    const call = renamed(one.call, (await view.sources.find(below, record.deployment))?.name);
    if (call === one.call) return;
    name.title = name.textContent;
    name.textContent = plain(call);
  };
  if (caller && one.call) look(caller);
  return make("li", {}, name, " ", whereNow(one, record, view));
};

/**
 * The frames of the game: that the runtime passed something on says nothing about it.
 *
 * @param {string} stack
 */
const framesOfGame = (stack) => framesOf(stack).filter(({ isOurs }) => !isOurs);

/**
 * Where a record itself says that it came up.
 *
 * @param {Schemas["LogRecord"]} record
 * @returns {Spot}
 */
const origin = ({ stack, url, line, column }) => ({
  file: url ?? "",
  line: line ?? 0,
  column: column ?? 0,
  isBehind: countsBehind(stack),
});

/**
 * A deployment, as the list of deployments has it.
 *
 * @param {string} id
 * @param {View} view
 */
const named = (id, { now }) => {
  const kept = now()?.deployments.find((one) => one.id === id);
  if (!kept) return ["One that is not kept"];
  return [moment(kept.created_at), ...(kept.current ? [", shown now"] : [])];
};

/**
 * What a record says beyond its line.
 *
 * @param {Schemas["LogRecord"]} record
 * @param {View} view
 */
const details = (record, view) => {
  const { message, stack, url, metadata, player, deployment } = record;
  /** @type {HTMLElement[]} */
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

/**
 * What makes two records one: all that is shown of them but the time.
 *
 * @param {Schemas["LogRecord"]} record
 */
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
  /**
   * @param {Schemas["LogRecord"]} record
   * @param {View} view
   * @param {string} [key]
   */
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
    this.fold = fold;
    this.element = make("li", { className: `entry ${LEVELS[level] ? level : ""}` }, fold);
    this.#tell();
  }

  /** Whether its details are shown. */
  get isOpen() {
    return this.fold.open;
  }

  /**
   * Whether this record, whose key is `key`, is one more of these.
   *
   * @param {Schemas["LogRecord"]} record
   * @param {string} key
   */
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
