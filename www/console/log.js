// The log beside the preview: newest first, equal records folded, filtered by
// what is chosen above it. However much comes in, the page keeps a bounded part.

import { allById, byId, count, make, plain } from "./dom.js";
import { Entry, keyOf, playerName } from "./entry.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { View } from "./entry.js" */

/** Entries on the page, at most; the oldest go first. */
const SHOWN = 500;
/** Records that wait while the log is paused, at most. */
const WAITING = 1000;
/** Records that are shown with one picture, at most, so that the page stays usable in a flood. */
const AT_ONCE = 100;
/** Entries back from the newest that a record may fold into. */
const FOLDS = 10;
/** Sentences about what was left out, at most. */
const GAPS = 10;
/** Milliseconds between two sentences that are read out. */
const QUIET = 5000;
/** Characters of an error that are read out. */
const SPOKEN = 120;
const GRAVITY = ["debug", "info", "warn", "error"];
/** Who is chosen for records that name no player. */
const NOBODY = "none";
/** @param {Pick<Schemas["LogRecord"], "player">} record */
const whoOf = ({ player }) => player ?? NOBODY;

/** The log panel. */
export class Log {
  /** @type {Entry[]} */
  #entries = [];
  /** @type {Schemas["LogRecord"][]} */
  #waiting = [];
  #leftOut = 0;
  #paused = false;
  #due = false;
  #newErrors = 0;
  /** @type {number | undefined} */
  #speaking;
  #view;

  /**
   * `game` is the game's address, `self` who looks, `now` what its environment is like now.
   *
   * @param {View} view
   */
  constructor(view) {
    this.#view = view;
    for (const choice of allById("level", "source", "player"))
      choice.onchange = () => this.#filter();
    byId("pause").onclick = () => this.#pause();
    byId("clear").onclick = () => this.#clear();
    byId("only-errors").onclick = () => {
      byId("level").value = "error";
      this.#filter();
    };
  }

  /**
   * Takes a record in; it is shown with the next picture.
   *
   * @param {Schemas["LogRecord"]} record
   */
  add(record) {
    this.#waiting.push(record);
    if (this.#waiting.length > WAITING) {
      this.#waiting.shift();
      this.#leftOut++;
    }
    if (this.#paused) this.#tellPause();
    else this.#plan();
  }

  /**
   * Takes in what was logged before, newest first. It is not read out.
   *
   * @param {Schemas["LogRecord"][]} records
   */
  addPast(records) {
    this.#waiting.push(...records.reverse());
    this.#show({ aloud: false, most: Infinity });
  }

  /**
   * Says that records were left out on their way here.
   *
   * @param {number} number
   */
  dropped(number) {
    this.#leftOut += number;
    this.#plan();
  }

  #plan() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => this.#show());
  }

  #show({ aloud = true, most = AT_ONCE } = {}) {
    this.#due = false;
    if (this.#paused) return;
    this.#tellLeftOut();
    for (const record of this.#waiting.splice(0, most)) {
      if (aloud && record.level === "error") this.#speak(record);
      const key = keyOf(record);
      const folded = this.#entries.slice(0, FOLDS).find((entry) => entry.takes(record, key));
      if (folded) {
        this.#raise(folded);
        continue;
      }
      const entry = new Entry(record, this.#view, key);
      entry.element.hidden = !this.#passes(record);
      this.#entries.unshift(entry);
      byId("records").prepend(entry.element);
    }
    for (const { element } of this.#entries.splice(SHOWN)) element.remove();
    this.#offerPlayers();
    this.#tally();
    if (this.#waiting.length) this.#plan();
  }

  /**
   * Puts an entry first, as the newest; not what somebody reads just now.
   *
   * @param {Entry} entry
   */
  #raise(entry) {
    const { element } = entry;
    if (entry === this.#entries[0] || entry.isOpen || element.contains(document.activeElement))
      return;
    this.#entries.splice(this.#entries.indexOf(entry), 1);
    this.#entries.unshift(entry);
    byId("records").prepend(element);
  }

  /** Says how many are missing between what is shown and what waits. */
  #tellLeftOut() {
    if (!this.#leftOut) return;
    const words = `${count(this.#leftOut, "record was", "records were")} left out: more came in than can be shown.`;
    byId("records").prepend(make("li", { className: "gap soft note", textContent: words }));
    for (const gap of [...document.querySelectorAll("#records > .gap")].slice(GAPS)) gap.remove();
    this.#leftOut = 0;
  }

  /** @param {Schemas["LogRecord"]} record */
  #passes({ level, source, player }) {
    const [least, from, who] = allById("level", "source", "player").map(({ value }) => value);
    return (
      GRAVITY.indexOf(level) >= GRAVITY.indexOf(least) &&
      (!from || source === from) &&
      (!who || whoOf({ player }) === who)
    );
  }

  #filter() {
    for (const { element, record } of this.#entries) element.hidden = !this.#passes(record);
    this.#tally();
  }

  #tally() {
    const errors = this.#entries.filter(({ record }) => record.level === "error");
    const number = errors.reduce((sum, entry) => sum + entry.count, 0);
    byId("tally").hidden = !number;
    byId("tally-words").textContent = count(number, "error", "errors");
    byId("only-errors").hidden = byId("level").value === "error";
    const quiet = byId("quiet");
    quiet.hidden = this.#entries.some(({ element }) => !element.hidden);
    if (this.#entries.length) quiet.textContent = "Nothing of what was logged is like this.";
  }

  /** Offers the players of what is shown, the newest first, and who is chosen already. */
  #offerPlayers() {
    const { value: chosen, options } = /** @type {HTMLSelectElement} */ (byId("player"));
    const players = new Set(this.#entries.map(({ record }) => whoOf(record)));
    if (chosen) players.add(chosen);
    for (const option of [...options])
      if (option.value && !players.has(option.value)) option.remove();
    const offered = new Set([...options].map(({ value }) => value));
    for (const value of [...players].filter((id) => !offered.has(id)).reverse()) {
      const name = playerName(value === NOBODY ? null : value, this.#view.self);
      options[0].after(make("option", { value, textContent: name }));
    }
  }

  #pause() {
    this.#paused = !this.#paused;
    byId("pause").ariaPressed = String(this.#paused);
    this.#tellPause();
    if (!this.#paused) this.#show();
  }

  #tellPause() {
    const number = this.#waiting.length;
    const words = number ? `Paused · ${count(number, "new record", "new records")}` : "Paused";
    byId("pause").textContent = this.#paused ? words : "Pause";
  }

  #clear() {
    this.#waiting = [];
    this.#leftOut = 0;
    this.#entries = [];
    byId("records").replaceChildren();
    this.#offerPlayers();
    this.#tellPause();
    this.#tally();
    byId("quiet").textContent = "Cleared. What comes next is shown here.";
  }

  /**
   * Reads errors out, a sentence for all of a while.
   *
   * @param {Schemas["LogRecord"]} record
   */
  #speak({ message, count: number }) {
    this.#newErrors += number;
    this.#speaking ??= setTimeout(() => {
      this.#speaking = undefined;
      byId("news").textContent =
        `${count(this.#newErrors, "new error", "new errors")}: ${this.#spoken}`;
      this.#newErrors = 0;
    }, QUIET);
    this.#spoken = plain(message.slice(0, SPOKEN));
  }

  #spoken = "";
}
