// How many errors and warnings each deployment has logged in the chosen period.

import { byId, make, moment, refill } from "./dom.js";
import { nameOf } from "./deployments.js";
import { PERIODS } from "./project.js";
import { deployFirst } from "./undeployed.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

/**
 * @param {Omit<Schemas["DeploymentErrors"], "last_at"> & { last_at?: string }} errors
 * @param {Schemas["Deployment"] | undefined} kept
 */
const row = ({ deployment: id, errors, warnings, last_at: last }, kept) => {
  const what = make("th", { scope: "row" });
  if (kept)
    what.append(
      nameOf(kept),
      " ",
      moment(kept.created_at),
      ...(kept.current ? [" ", make("b", { className: "now", textContent: "Shown now" })] : []),
    );
  else if (id)
    what.append("One that is not kept ", make("code", { textContent: id.slice(0, 8), title: id }));
  else what.append("Before the first deployment");
  /**
   * @param {number} value
   * @param {string} className
   */
  const number = (value, className) =>
    make("td", { className: value ? className : "", textContent: value.toLocaleString() });
  return make(
    "tr",
    {},
    what,
    number(errors, "bad"),
    number(warnings, "doubtful"),
    make("td", {}, last ? moment(last) : "–"),
  );
};

/** @param {Desk} desk */
const count = async (desk) => {
  const isSame = desk.mark();
  const { words } = PERIODS[desk.period];
  const query = new URLSearchParams(desk.query());
  const { deployments } = await desk.session.ask(`/api/projects/${desk.slug}/errors?${query}`);
  if (!isSame()) return;
  const { now } = desk;
  const kept = new Map(now.deployments.map((one) => [one.id, one]));
  // The current deployment is listed even without errors: its developer wants to know that.
  const current = now.deployment?.id ?? null;
  const clean = { deployment: current, errors: 0, warnings: 0 };
  const first = deployments.find((one) => one.deployment === current) ?? clean;
  const rows = [
    ...(current ? [first] : []),
    ...deployments.filter((one) => !current || one !== first),
  ];
  byId("error-rows").replaceChildren(
    ...rows.map((one) => row(one, kept.get(one.deployment ?? ""))),
  );
  byId("error-table").hidden = !rows.length;
  byId("no-errors").hidden = deployments.length > 0;
  refill(
    byId("no-errors"),
    `No error and no warning was logged in ${words}. `,
    current ? "What goes wrong in the game comes here by itself." : deployFirst(desk),
  );
  byId("error-words").textContent = deployments.length
    ? `In ${words}, by whole hours; a record that stands for many counts as many.`
    : "";
};

/**
 * The section about errors by deployment.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const errorCounts = (desk) => ({
  open: () => {
    byId("error-table").hidden = true;
    byId("no-errors").textContent = "";
    byId("error-words").textContent = "";
  },
  look: () => count(desk),
});
