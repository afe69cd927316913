// The search for records in the log, one page of them at a time.

import { allById, byId, count, moment, size } from "./dom.js";
import { Entry } from "./entry.js";
import { Refusal } from "./session.js";
import { Sources } from "./source_map.js";
import { Tail } from "./tail.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { View } from "./entry.js" */
/** @import { Desk, Part } from "./project.js" */

/** How many records a page has. */
const PAGE = 50;
/** How many records are shown before the first page is asked for again. */
const SHOWN = 500;
/** How many requests are made for one page: each searches a part of the log. */
const LOOKS = 60;
const HOUR = 3_600_000;

/** The log of a project, for one environment at a time. */
class Search {
  #desk;
  #path;
  /** @type {View | undefined} */
  #view;
  /**
   * Where each earlier page, this page and the next page begin.
   *
   * @type {(string | undefined)[]}
   */
  #behind = [];
  /** @type {string | undefined} */
  #before;
  /** @type {string | undefined} */
  #next;
  /** @type {Record<string, string>} */
  #asked = {};
  #buttons = /** @type {HTMLButtonElement[]} */ (allById("older", "newer"));
  #turn = 0;
  /** The id of the newest record that is known. */
  #newest = 0n;
  #tail;

  /** @param {Desk} desk */
  constructor(desk) {
    this.#desk = desk;
    this.#tail = new Tail(desk, (records) => this.#follow(records));
    this.#path = /** @type {const} */ (`/api/projects/${desk.slug}/logs`);
    byId("search").onsubmit = (event) => {
      event.preventDefault();
      if (!this.#begin()) byId("from").focus();
    };
    byId("newly-show").onclick = () => this.#turnTo([], undefined);
    byId("time").onchange = () => (byId("between").hidden = byId("time").value !== "between");
    byId("older").onclick = () => this.#turnTo([...this.#behind, this.#before], this.#next);
    byId("newer").onclick = () => this.#turnTo(this.#behind.slice(0, -1), this.#behind.at(-1));
  }

  /** Searches another environment. */
  show() {
    const { session, path, player } = this.#desk;
    const game = `${this.#desk.now.url}/`;
    const now = () => this.#desk.now;
    // The records of the other environment are removed at once: the new ones may come late or never.
    ++this.#turn;
    this.#newest = 0n;
    [this.#asked, this.#behind, this.#before, this.#next] = [{}, [], undefined, undefined];
    for (const part of allById("records", "search-state")) part.replaceChildren();
    for (const button of this.#buttons) button.disabled = true;
    byId("results").ariaBusy = "false";
    byId("quiet").hidden = true;
    /** @type {import("./source_map.js").Kept} */
    const kept = {
      session,
      environment: path,
      has: (id) => now().deployments.some((one) => one.id === id),
    };
    this.#view = {
      game,
      self: player.sub,
      sources: new Sources(game, () => now().deployment?.id, kept),
      now,
      withDay: true,
    };
    return Promise.all([this.#tail.start(), this.#begin()]);
  }

  /** Whether the first page is shown, and nothing is searched for. */
  get #isAll() {
    const isAsked = ["level", "source", "player", "q", "from", "to"].some(
      (name) => this.#asked[name] && this.#asked[name] !== "debug",
    );
    return !isAsked && !this.#behind.length;
  }

  /**
   * Shows records that came after the search.
   *
   * @param {Schemas["LogRecord"][]} [records] nothing if they are too many
   */
  #follow(records) {
    const view = this.#view;
    const isBusy = byId("results").ariaBusy === "true";
    if (!view || isBusy || !this.#isAll) {
      byId("newly").hidden = isBusy;
      return;
    }
    const list = byId("records");
    const results = byId("results");
    const isRead = list.querySelector("details[open]") || list.contains(document.activeElement);
    if (!records || list.childElementCount + records.length > SHOWN) {
      // Who reads a record keeps it.
      if (isRead) byId("newly").hidden = false;
      else this.#turnTo([], undefined);
      return;
    }
    const fresh = records.filter(({ id }) => BigInt(id) > this.#newest);
    if (!fresh.length) return;
    this.#newest = BigInt(fresh[fresh.length - 1].id);
    const [before, top] = [list.scrollHeight, results.scrollTop];
    list.prepend(...fresh.reverse().map((record) => new Entry(record, view).element));
    // What is read stays where it is.
    if (top) results.scrollTop = top + list.scrollHeight - before;
    byId("quiet").hidden = true;
    if (list.childElementCount === fresh.length) byId("search-state").textContent = "";
  }

  /**
   * Shows why there is no search, or removes that message.
   *
   * @param {string} [sentence]
   */
  #refuse(sentence = "") {
    const from = byId("from");
    byId("search-error").textContent = sentence;
    from.ariaInvalid = sentence ? "true" : null;
    if (sentence) byId("quiet").hidden = true;
  }

  /** Reads the form and starts the search. Returns nothing if the form is wrong. */
  #begin() {
    /** @param {"time" | "from" | "to" | "level" | "source" | "player"} id */
    const value = (id) => byId(id).value.trim();
    const time = value("time");
    /** @param {"from" | "to"} id */
    const local = (id) => value(id) && new Date(value(id)).toISOString();
    const between = time === "between";
    if (between && value("from") && value("to") && local("from") >= local("to")) {
      return this.#refuse("From is not before To, so there is nothing in between.");
    }
    const asked = {
      env: this.#desk.environment,
      limit: String(PAGE),
      level: value("level"),
      source: value("source"),
      player: value("player"),
      q: byId("text").value,
      from: between
        ? local("from")
        : time && new Date(Date.now() - Number(time) * HOUR).toISOString(),
      to: between ? local("to") : "",
    };
    this.#asked = Object.fromEntries(Object.entries(asked).filter(([, text]) => text));
    return this.#turnTo([], undefined);
  }

  /**
   * @param {(string | undefined)[]} behind
   * @param {string | undefined} before
   */
  async #turnTo(behind, before) {
    const turn = ++this.#turn;
    const state = byId("search-state");
    this.#refuse();
    byId("newly").hidden = true;
    state.textContent = "Looking…";
    byId("results").ariaBusy = "true";
    for (const button of this.#buttons) button.disabled = true;
    try {
      let next = before;
      /** @type {Schemas["LogRecord"][]} */
      let records = [];
      let looks = 0;
      do {
        const query = new URLSearchParams({ ...this.#asked, ...(next && { before: next }) });
        const found = await this.#desk.session.ask(`${this.#path}?${query}`);
        if (turn !== this.#turn) return;
        records = [...records, ...found.records];
        next = found.before ?? undefined;
      } while (next && records.length < PAGE && ++looks < LOOKS);
      [this.#behind, this.#before, this.#next] = [behind, before, next];
      this.#draw(records);
    } catch (refusal) {
      if (turn !== this.#turn) return;
      if (!(refusal instanceof Refusal)) throw refusal;
      state.textContent = "";
      byId("quiet").hidden = true;
      byId("search-error").textContent = refusal.message;
    } finally {
      if (turn === this.#turn) {
        byId("results").ariaBusy = "false";
        const [older, newer] = this.#buttons;
        older.disabled = !this.#next;
        newer.disabled = !this.#behind.length;
      }
    }
  }

  /** @param {Schemas["LogRecord"][]} records */
  #draw(records) {
    const view = this.#view;
    // There is no search before `show`.
    if (!view) return;
    byId("records").replaceChildren(...records.map((record) => new Entry(record, view).element));
    byId("results").scrollTop = 0;
    const newest = BigInt(records[0]?.id ?? 0);
    if (newest > this.#newest) this.#newest = newest;
    const quiet = byId("quiet");
    quiet.hidden = records.length > 0;
    quiet.textContent = this.#isAll ? (quiet.dataset.empty ?? "") : "No record is like this.";
    // An id is the millisecond of its arrival times 2^20, plus a number.
    const reached = this.#next && moment(new Date(Number(BigInt(this.#next) >> 20n)).toISOString());
    const state = byId("search-state");
    state.replaceChildren(
      `${count(records.length, "record", "records")}, page ${this.#behind.length + 1}. `,
    );
    if (reached) state.append("Looked back to ", reached, "; older ones may follow.");
    else if (records.length) state.append("There are no older ones.");
  }
}

/**
 * The section about the log.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const log = (desk) => {
  const search = new Search(desk);
  return {
    open: () => search.show(),
    draw: () => {
      const { bytes, quota_bytes: quota } = desk.project.logs;
      byId("room").hidden = false;
      byId("room-words").textContent = quota
        ? `Logs use ${size(bytes)} of ${size(quota)}; the oldest go first.`
        : `Logs use ${size(bytes)}.`;
      byId("room-meter").hidden = !quota;
      if (quota) Object.assign(byId("room-meter"), { max: quota, value: bytes });
    },
  };
};
