// Players over time: charts that the platform draws, the values under the pointer, and the same
// numbers as tables.

import { Charts } from "./charts.js";
import { allById, byId, count, make, mean, momentText, playersNow, refill, sum } from "./dom.js";
import { PERIODS } from "./project.js";
import { deployFirst } from "./undeployed.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Inside } from "./dom.js" */
/** @import { Desk, Part, Period } from "./project.js" */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The margins of a chart in pixels, as in the platform's `charts.rs`. */
const [LEFT, RIGHT] = [44, 16];
/**
 * The time that a row of the table covers, for each period.
 *
 * @type {Record<Period, number>}
 */
const ROWS = { hour: 5 * MINUTE, day: HOUR, week: 6 * HOUR, quarter: 24 * HOUR };

const whole = new Intl.NumberFormat();
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

/**
 * @param {string} head
 * @param {...string} cells
 */
const row = (head, ...cells) =>
  make(
    "tr",
    {},
    make("th", { scope: "row" }, head),
    ...cells.map((cell) => make("td", { textContent: cell })),
  );

/**
 * Groups points into rows of a table, with the greatest peak and the sum of the means of each.
 *
 * @param {Schemas["PlayersPoint"][]} points
 * @param {number} length
 */
const summed = (points, length) => {
  const rows = new Map();
  for (const { time, peak, mean: part } of points) {
    const start = Math.floor(Date.parse(time) / length) * length;
    const one = rows.get(start) ?? { start, peak: 0, sum: 0, number: 0 };
    rows.set(start, {
      start,
      peak: Math.max(one.peak, peak),
      sum: one.sum + part,
      number: one.number + 1,
    });
  }
  return [...rows.values()].reverse();
};

/**
 * Returns what is shown if nobody has ever played, and what to do about it.
 *
 * @param {Desk} desk
 * @returns {Inside[]}
 */
const never = (desk) => {
  const { deployment: current, url } = desk.now;
  if (!current)
    return ["Nobody has played here yet: there is nothing to play. ", deployFirst(desk)];
  return [
    "Nobody has played here yet. Who plays at ",
    make("a", { href: url, target: "_blank", rel: "noopener", textContent: url }),
    " is counted within a minute: send somebody the address.",
  ];
};

/** The players of a project, for one environment and period at a time. */
class Players {
  #desk;
  #path;
  /** @type {{ env: string, from: string, to: string } | undefined} */
  #asked;
  /** @type {Schemas["PlayersPoint"][]} */
  #points = [];
  #step = MINUTE;
  #turn = 0;
  #charts;

  /** @param {Desk} desk */
  constructor(desk) {
    this.#desk = desk;
    this.#path = /** @type {const} */ (`/api/projects/${desk.slug}/players`);
    this.#charts = new Charts(desk, ["playing", "days", "months"]);
    const plot = byId("plot");
    plot.onpointermove = (event) => this.#point(event.clientX);
    plot.onpointerdown = (event) => this.#point(event.clientX);
    plot.onpointerleave = () => this.#point();
  }

  /** Asks for the numbers and the charts, and shows them. */
  async look() {
    const turn = ++this.#turn;
    const { period } = this.#desk;
    const asked = this.#desk.query();
    if (asked.env !== this.#asked?.env) this.#forget();
    const found = await this.#desk.session.ask(`${this.#path}?${new URLSearchParams(asked)}`);
    if (turn !== this.#turn) return;
    this.#asked = asked;
    this.#points = found.points;
    this.#step = found.step_seconds * 1000;
    this.#tell(found, period);
    await this.#charts.draw(asked);
  }

  /** Removes the numbers of another environment at once: the new ones may come late or never. */
  #forget() {
    this.#asked = undefined;
    this.#points = [];
    for (const place of allById("now", "today", "month")) place.textContent = "–";
    for (const part of allById("nobody", "over-time", "different")) part.hidden = true;
    this.#charts.forget();
  }

  /**
   * @param {Schemas["Players"]} found
   * @param {Period} period
   */
  #tell({ now, points, days, months, distinct_error: error }, period) {
    const [{ words }, length] = [PERIODS[period], ROWS[period]];
    const peak = Math.max(0, ...points.map((point) => point.peak));
    const average = points.reduce((sum, point) => sum + point.mean, 0) / Math.max(points.length, 1);
    const today = new Date().toISOString().slice(0, 10);
    /**
     * @param {Schemas["DistinctPlayers"][]} list
     * @param {string} name
     */
    const of = (list, name) => list.find((one) => one.period === name)?.players ?? 0;
    const different = { today: of(days, today), month: of(months, today.slice(0, 7)) };
    byId("now").textContent = now === null ? "?" : whole.format(now);
    for (const id of /** @type {const} */ (["today", "month"])) {
      const number = different[id];
      byId(id).textContent = whole.format(number);
      byId(`${id}-words`).textContent = number === 1 ? "player" : "different players";
    }
    const summary = `${whole.format(peak)} at most and ${mean(average, peak)} on average in ${words}`;
    byId("playing-words").textContent = peak ? `${summary}.` : "";
    byId("playing").alt = `Players at one time: ${summary}. The table below has the numbers.`;
    byId("nobody").hidden = peak > 0;
    refill(
      byId("nobody"),
      ...(days.length || now !== 0 ? [`Nobody played in ${words}.`] : never(this.#desk)),
    );
    byId("over-time").hidden = !peak;
    byId("different").hidden = !days.length;
    byId("error").textContent = percent.format(error);
    byId("playing-rows").replaceChildren(
      ...summed(points, length).map((one) =>
        row(momentText(one.start), whole.format(one.peak), mean(one.sum / one.number, one.peak)),
      ),
    );
    /** @param {Schemas["DistinctPlayers"][]} list */
    const periods = (list) => list.map(({ period, players }) => row(period, whole.format(players)));
    byId("day-rows").replaceChildren(...periods(days.slice(0, 30)));
    byId("month-rows").replaceChildren(...periods(months.slice(0, 12)));
    byId("days").alt =
      `Different players on each of the last 30 days; today ${count(of(days, today), "player", "players")}. The table below has the numbers.`;
    byId("months").alt =
      "Different players in each of the last 12 months. The table below has the numbers.";
  }

  /**
   * Shows the values at this place of the chart.
   *
   * @param {number} [x]
   */
  #point(x = Number.NaN) {
    const [needle, words] = allById("needle", "readout");
    const bounds = byId("playing").getBoundingClientRect();
    const part = (x - bounds.left - LEFT) / (bounds.width - LEFT - RIGHT);
    const [from, to] = [this.#asked?.from, this.#asked?.to].map((time) => Date.parse(time ?? ""));
    const first = Date.parse(this.#points[0]?.time);
    const point = this.#points[Math.floor((first + part * (to - first) - first) / this.#step)];
    needle.hidden = !(part >= 0 && part <= 1 && point && from);
    words.textContent = "";
    if (needle.hidden) return;
    needle.style.insetInlineStart = `${x - bounds.left}px`;
    words.textContent = `${momentText(Date.parse(point.time))}: ${whole.format(point.peak)} at most, ${mean(point.mean, point.peak)} on average`;
  }
}

/**
 * The section about players.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const players = (desk) => {
  const shown = new Players(desk);
  return {
    look: () => shown.look(),
    draw: () => {
      const { dev, prod } = desk.project.environments;
      byId("both").textContent =
        `${playersNow(sum(dev.players, prod.players))} in both environments`;
    },
  };
};
