// Looking for records in the log, a page of them at a time.

import { byId, count, moment } from "./dom.js";
import { Entry } from "./entry.js";
import { Refusal } from "./session.js";
import { Sources } from "./source_map.js";

/** Records of one page. */
const PAGE = 50;
/** Times that the platform is asked for one page, at most: each looks at a part of the log. */
const LOOKS = 60;
const HOUR = 3_600_000;

/** The log part of the page, of one environment at a time. */
export class Search {
  #session;
  #project;
  #path;
  #self;
  #view;
  #environment;
  /** Where each page before this one began, and where the next one does. */
  #behind = [];
  #before;
  #next;
  #asked = {};
  #turn = 0;

  constructor(session, slug, self) {
    this.#session = session;
    this.#project = `/api/projects/${slug}`;
    this.#path = `${this.#project}/logs`;
    this.#self = self;
    byId("search").onsubmit = (event) => {
      event.preventDefault();
      if (!this.#begin()) byId("from").focus();
    };
    byId("time").onchange = () => (byId("between").hidden = byId("time").value !== "between");
    byId("older").onclick = () => this.#turnTo([...this.#behind, this.#before], this.#next);
    byId("newer").onclick = () => this.#turnTo(this.#behind.slice(0, -1), this.#behind.at(-1));
  }

  /** Looks in another environment; `game` is its address, `now` what it is like now. */
  show(environment, game, now) {
    this.#environment = environment;
    // Nobody may take the other environment's records for this one's, should these not come or not be asked for.
    ++this.#turn;
    [this.#asked, this.#behind, this.#before, this.#next] = [{}, [], undefined, undefined];
    for (const id of ["records", "search-state"]) byId(id).replaceChildren();
    for (const id of ["older", "newer"]) byId(id).disabled = true;
    byId("results").ariaBusy = "false";
    byId("quiet").hidden = true;
    const kept = {
      session: this.#session,
      environment: `${this.#project}/environments/${environment}`,
      has: (id) => now()?.deployments.some((one) => one.id === id),
    };
    this.#view = {
      game,
      self: this.#self,
      sources: new Sources(game, () => now()?.deployment?.id, kept),
      now,
      withDay: true,
    };
    return this.#begin();
  }

  /** Says why nothing is looked for; without a reason, that the time can be looked at. */
  #refuse(sentence = "") {
    const from = byId("from");
    byId("search-error").textContent = sentence;
    from.ariaInvalid = sentence ? "true" : null;
    if (sentence) byId("quiet").hidden = true;
  }

  /** Reads the form, and looks. What is not chosen is not asked for. Nothing is returned where the form is wrong. */
  #begin() {
    const value = (id) => byId(id).value.trim();
    const time = value("time");
    const local = (id) => value(id) && new Date(value(id)).toISOString();
    const between = time === "between";
    if (between && value("from") && value("to") && local("from") >= local("to")) {
      return this.#refuse("From is not before To, so there is nothing in between.");
    }
    const asked = {
      env: this.#environment,
      limit: PAGE,
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

  async #turnTo(behind, before) {
    const turn = ++this.#turn;
    const state = byId("search-state");
    this.#refuse();
    state.textContent = "Looking…";
    byId("results").ariaBusy = "true";
    for (const id of ["older", "newer"]) byId(id).disabled = true;
    try {
      let [next, records, looks] = [before, [], 0];
      do {
        const query = new URLSearchParams({ ...this.#asked, ...(next && { before: next }) });
        const found = await this.#session.ask(`${this.#path}?${query}`);
        if (turn !== this.#turn) return;
        records = [...records, ...found.records];
        next = found.before;
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
        byId("older").disabled = !this.#next;
        byId("newer").disabled = !this.#behind.length;
      }
    }
  }

  #draw(records) {
    byId("records").replaceChildren(
      ...records.map((record) => new Entry(record, this.#view).element),
    );
    byId("results").scrollTop = 0;
    const looks = ["level", "source", "player", "q", "from", "to"].some(
      (name) => this.#asked[name] && this.#asked[name] !== "debug",
    );
    const quiet = byId("quiet");
    quiet.hidden = records.length > 0;
    quiet.textContent =
      looks || this.#behind.length ? "No record is like this." : quiet.dataset.empty;
    // An id begins with the millisecond of arrival (2^20 of them in each).
    const reached = this.#next && moment(new Date(Number(BigInt(this.#next) >> 20n)).toISOString());
    const state = byId("search-state");
    state.replaceChildren(
      `${count(records.length, "record", "records")}, page ${this.#behind.length + 1}. `,
    );
    if (reached) state.append("Looked back to ", reached, "; older ones may follow.");
    else if (records.length) state.append("There are no older ones.");
  }
}
