// The log beside the preview: newest first, equal records folded, with filters. The page keeps a
// limited number of records, however many arrive.

import { allById, byId, count, make, plain } from "./dom.js";
import { Entry, keyOf, playerName } from "./entry.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { View } from "./entry.js" */

/** How many entries the page keeps; the oldest are removed. */
const SHOWN = 500;
/** How many records wait while the log is paused. */
const WAITING = 1000;
/** How many records are shown in one frame of animation, so that the page stays usable. */
const AT_ONCE = 100;
/** A record is folded into one of this many newest entries. */
const FOLDS = 10;
/** How many lines about missing records are kept. */
const GAPS = 10;
/** Milliseconds between two messages for screen readers. */
const QUIET = 5000;
/** How many characters of an error screen readers read. */
const SPOKEN = 120;
const GRAVITY = ["debug", "info", "warn", "error"];
/** The value of the filter for records without a player. */
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
   * Shows an empty log.
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
   * Adds a record, which is shown in the next frame of animation.
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
   * Adds earlier records, newest first. Screen readers do not read them.
   *
   * @param {Schemas["LogRecord"][]} records
   */
  addPast(records) {
    this.#waiting.push(...records.reverse());
    this.#show({ aloud: false, most: Infinity });
  }

  /**
   * Counts records that the platform has left out.
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
   * Moves an entry to the top, unless the viewer is reading it.
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

  /** Shows how many records are missing between the shown ones and the waiting ones. */
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

  /** Offers the players of the shown records in the filter, newest first, and keeps the chosen one. */
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
   * Lets screen readers read new errors, several in one message.
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
