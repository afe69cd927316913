// What is logged while one looks at the log: it comes by itself, unless one searches for something
// or turns pages.

import { byId } from "./dom.js";
import { follow } from "./stream.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk } from "./project.js" */

/** Milliseconds in which records are collected before they are shown. */
const COLLECTED = 500;
/** How many records are shown one by one; if there are more, the newest page is asked for. */
const FEW = 50;

/** The records that come after those of a search. */
export class Tail {
  #desk;
  #take;
  /** @type {AbortController | undefined} */
  #following;
  /** @type {Schemas["LogRecord"][]} */
  #waiting = [];
  #isMuch = false;
  /** @type {number | undefined} */
  #due;

  /**
   * `take` is called with new records, oldest first, or with nothing if there are too many.
   *
   * @param {Desk} desk
   * @param {(records?: Schemas["LogRecord"][]) => void} take
   */
  constructor(desk, take) {
    this.#desk = desk;
    this.#take = take;
  }

  /** Follows the log of the environment that is shown now, and of no other one. */
  async start() {
    const { session, slug, environment } = this.#desk;
    const path = /** @type {const} */ (`/api/projects/${slug}/logs`);
    this.#following?.abort();
    this.#following = new AbortController();
    const { signal } = this.#following;
    this.#forget();
    const { records } = await session.ask(`${path}?env=${environment}&limit=1`);
    if (signal.aborted) return;
    const connection = byId("connection");
    const follower = {
      /** @param {Schemas["LogRecord"]} record */
      record: (record) => signal.aborted || this.#collect(record),
      dropped: () => signal.aborted || this.#collect(),
      /** @param {boolean} isLive */
      state: (isLive) => {
        if (signal.aborted) return;
        connection.textContent = isLive ? "Live" : "Not live: trying again…";
        connection.classList.toggle("live", isLive);
      },
      // The rest of the page says why.
      end: () => (connection.textContent = "Not live"),
    };
    follow(session, `${path}/stream?env=${environment}`, records[0]?.id ?? "0", follower, signal);
  }

  #forget() {
    clearTimeout(this.#due);
    [this.#waiting, this.#isMuch, this.#due] = [[], false, undefined];
  }

  /** @param {Schemas["LogRecord"]} [record] */
  #collect(record) {
    if (record && this.#waiting.length < FEW) this.#waiting.push(record);
    else this.#isMuch = true;
    this.#due ??= setTimeout(() => {
      const records = this.#isMuch ? undefined : this.#waiting;
      this.#forget();
      this.#take(records);
    }, COLLECTED);
  }
}
