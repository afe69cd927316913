// One entry of the log on the page: a record, and the equal records that are folded into it.

import { count, make, moment, plain, userText } from "./dom.js";
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
 * What all records of a log on the page share.
 *
 * @typedef {object} View
 * @property {string} game the game's address
 * @property {string} self the viewer's id
 * @property {Sources} sources
 * @property {() => Schemas["Environment"] | undefined} now returns the environment's present state
 * @property {(player: string | null) => { number: number, name: string } | undefined} [paneOf]
 *   returns the pane in which a player plays
 * @property {boolean} [withDay] whether moments are shown with their day
 */

/** @typedef {Pick<Frame, "file" | "line" | "column" | "isBehind">} Spot A place in a script. */

/** How many characters of a message the entry's line has. The details have the whole message. */
const SHORT = 240;

/**
 * The names of test players, by id.
 *
 * @type {Map<string, string>}
 */
export const names = new Map();

/**
 * Returns how the log names a player: by the end of the id, unless it is a known test player.
 *
 * @param {string | null} player
 * @param {string} self
 */
export const playerName = (player, self) => {
  if (!player) return "Unknown";
  return player === self ? "You" : (names.get(player) ?? `Player ${player.slice(-8)}`);
};

/**
 * @param {string} name
 * @param {...Inside} value
 */
const fact = (name, ...value) => [make("dt", { textContent: name }), make("dd", {}, ...value)];

/**
 * What to do when an element becomes visible for the first time.
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
 * Shows a place in a script. `look` replaces it with the place in the original source, if there is
 * a source map.
 *
 * @param {Spot} one
 * @param {Schemas["LogRecord"]} record
 * @param {View} view
 */
const where = (one, record, { game, sources }) => {
  const shown = userText(place(one, game), "place");
  const look = async () => {
    const source = await sources.find(one, record.deployment);
    if (!source) return;
    shown.title = shown.textContent;
    shown.textContent = plain(place(source, game));
  };
  return { shown, look };
};

/**
 * Shows a place that looks for its source at once, in details that were opened.
 *
 * @param {Parameters<typeof where>} what
 */
const whereNow = (...what) => {
  const { shown, look } = where(...what);
  look();
  return shown;
};

/**
 * Shows a place that looks for its source when it becomes visible, in an entry's line: many entries
 * may never be seen.
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
 * Shows a frame of a stack. `caller` is the frame below it: the source there has this function's
 * name.
 *
 * @param {Frame} one
 * @param {Frame | undefined} caller
 * @param {Schemas["LogRecord"]} record
 * @param {View} view
 */
const frame = (one, caller, record, view) => {
  const name = userText(one.call || "(no name)", "caller");
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
 * Returns the frames of the game itself, without those of the runtime.
 *
 * @param {string} stack
 */
const framesOfGame = (stack) => framesOf(stack).filter(({ isOurs }) => !isOurs);

/**
 * Returns the place that a record itself names.
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
 * Describes a deployment as the list of deployments does.
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
 * Shows the details of a record.
 *
 * @param {Schemas["LogRecord"]} record
 * @param {View} view
 */
const details = (record, view) => {
  const { message, stack, url, metadata, player, deployment } = record;
  /** @type {HTMLElement[]} */
  const parts = [];
  if (message.length > SHORT) parts.push(make("pre", {}, userText(message)));
  const frames = stack ? framesOfGame(stack) : [];
  if (frames.length) {
    const list = frames.map((one, index) => frame(one, frames[index + 1], record, view));
    parts.push(make("ol", { className: "frames", ariaLabel: "Stack" }, ...list));
  } else if (stack && !framesOf(stack).length) {
    parts.push(make("pre", {}, userText(stack)));
  }
  const facts = [
    fact("Source", SOURCES[record.source] ?? userText(record.source)),
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
  if (metadata !== null) parts.push(make("pre", {}, userText(JSON.stringify(metadata, null, 2))));
  return parts;
};

/**
 * Returns a key that is equal for records that look equal except for their time.
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

/** One or more equal records, as one item of the log. */
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
    const { level, message, url, player } = record;
    const pane = view.paneOf?.(player);
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
      ...(pane ? [make("span", { className: "who", textContent: pane.name }), " "] : []),
      userText(short, "text"),
    );
    if (level === "error" && url) head.append(" ", whereSeen(origin(record), record, view));
    const fold = make("details", {}, head);
    // The details are made when the entry is opened, as few entries are.
    fold.addEventListener("toggle", () => fold.append(...details(this.record, view)), {
      once: true,
    });
    this.fold = fold;
    this.element = make("li", { className: `entry ${LEVELS[level] ? level : ""}` }, fold);
    if (pane) this.element.classList.add(`pane-${pane.number}`);
    this.#tell();
  }

  /** Whether its details are open. */
  get isOpen() {
    return this.fold.open;
  }

  /**
   * Folds an equal record into this entry. Returns false if the record, whose key is `key`, is not
   * equal.
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
