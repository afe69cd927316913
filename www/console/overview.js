// The numbers of an environment, and its deployment.

import { Charts } from "./charts.js";
import { nameOf } from "./deployments.js";
import { allById, byId, moment, playersNow, sum, userText } from "./dom.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

const whole = new Intl.NumberFormat();

/**
 * @param {Desk} desk
 * @param {Charts} charts
 */
const ask = async (desk, charts) => {
  const isSame = desk.mark();
  const asked = desk.query("day");
  const query = new URLSearchParams(asked);
  const [{ now, days, months, points }, { deployments }] = await Promise.all([
    desk.session.ask(`/api/projects/${desk.slug}/players?${query}`),
    desk.session.ask(`/api/projects/${desk.slug}/errors?${query}`),
  ]);
  if (!isSame()) return;
  const today = new Date().toISOString().slice(0, 10);
  /**
   * @param {Schemas["DistinctPlayers"][]} list
   * @param {string} period
   */
  const of = (list, period) => list.find((one) => one.period === period)?.players ?? 0;
  const errors = deployments.reduce((total, one) => total + one.errors, 0);
  byId("now").textContent = now === null ? "?" : whole.format(now);
  byId("today").textContent = whole.format(of(days, today));
  byId("month").textContent = whole.format(of(months, today.slice(0, 7)));
  byId("errors").textContent = whole.format(errors);
  byId("errors").className = errors ? "bad" : "";
  const peak = Math.max(0, ...points.map((point) => point.peak));
  byId("over-time").hidden = !peak;
  byId("playing").alt =
    `Players at one time in the last 24 hours: ${whole.format(peak)} at most. The tab Players has the numbers.`;
  if (peak) await charts.draw(asked);
};

/** @param {Schemas["Environment"]} now */
const drawDeployment = ({ deployment: current, url }) => {
  byId("current").hidden = !current;
  if (!current) return;
  byId("current-open").href = url;
  byId("current-words").replaceChildren(
    nameOf(current),
    " ",
    moment(current.created_at),
    ...(current.message ? [" ", userText(current.message, "host")] : []),
  );
};

/**
 * The sections of the overview.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const overview = (desk) => {
  const charts = new Charts(desk, ["playing"]);
  return {
    open: () => {
      for (const number of allById("now", "today", "month", "errors")) number.textContent = "–";
      byId("over-time").hidden = true;
      charts.forget();
    },
    look: () => ask(desk, charts),
    draw: () => {
      const { dev, prod } = desk.project.environments;
      byId("both").textContent =
        `${playersNow(sum(dev.players, prod.players))} in both environments`;
      drawDeployment(desk.now);
    },
  };
};
