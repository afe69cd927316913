// The charts of a project, which the platform draws: for the width that the page has for them, and
// in its colours.

import { byId } from "./dom.js";
import { Refusal } from "./session.js";

/** @import { Desk } from "./project.js" */

/** @typedef {"playing" | "days" | "months"} Chart The id of the image, and the chart's name. */
/** @typedef {{ env: string, from: string, to: string }} Asked */

/** The least and the greatest width of a chart in pixels. */
const [NARROWEST, WIDEST] = [240, 2000];

const dark = matchMedia("(prefers-color-scheme: dark)");

/** The charts on the page. They are drawn again when its width or its colours change. */
export class Charts {
  #desk;
  #names;
  /** @type {Asked | undefined} */
  #asked;
  #turn = 0;

  /**
   * @param {Desk} desk
   * @param {readonly Chart[]} names
   */
  constructor(desk, names) {
    this.#desk = desk;
    this.#names = names;
    const again = async () => {
      try {
        if (this.#asked) await this.draw(this.#asked);
      } catch (refusal) {
        // The old chart stays. It has the same numbers, in another size or colour.
        if (!(refusal instanceof Refusal)) throw refusal;
      }
    };
    dark.addEventListener("change", again);
    let width = innerWidth;
    /** @type {number | undefined} */
    let due;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(due);
      due = setTimeout(again, 200);
    });
  }

  /** @param {Asked} asked */
  async draw(asked) {
    this.#asked = asked;
    const turn = ++this.#turn;
    /** @param {Chart} name */
    const show = async (name) => {
      const image = byId(name);
      const room = image.parentElement?.clientWidth;
      if (!room) return;
      const query = new URLSearchParams({
        ...asked,
        show: name,
        width: String(Math.min(Math.max(room, NARROWEST), WIDEST)),
        theme: dark.matches ? "dark" : "light",
        utc_offset: String(-new Date().getTimezoneOffset()),
      });
      const path = `/api/projects/${this.#desk.slug}/players/chart?${query}`;
      const picture = await (await this.#desk.session.open(path)).blob();
      if (turn !== this.#turn) return;
      URL.revokeObjectURL(image.src);
      image.src = URL.createObjectURL(picture);
    };
    await Promise.all(this.#names.map(show));
  }

  /** Removes the charts. */
  forget() {
    this.#asked = undefined;
    this.#turn += 1;
    for (const name of this.#names) {
      URL.revokeObjectURL(byId(name).src);
      byId(name).removeAttribute("src");
    }
  }
}
