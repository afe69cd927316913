// What to do in an environment to which nothing is deployed yet.

import { byId, make } from "./dom.js";

/** @import { Desk, Part } from "./project.js" */

const NAMES = { dev: "dev", prod: "production" };

/**
 * Returns what to do next where something is missing because nothing is deployed.
 *
 * @param {Desk} desk
 */
export const deployFirst = ({ slug, environment }) =>
  make("a", {
    href: `/projects/${slug}/deployments?env=${environment}`,
    textContent: `Deploy the game to ${NAMES[environment]} first.`,
  });

/**
 * The notice above the other sections.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const undeployed = (desk) => ({
  draw: () => {
    const { environment, slug, now } = desk;
    byId("undeployed").hidden = Boolean(now.deployment);
    byId("undeployed-words").textContent =
      `Nothing is deployed to ${NAMES[environment]} yet. In the game's folder, this puts it there:`;
    byId("undeployed-command").textContent =
      `platform deploy --project ${slug}${environment === "prod" ? " --env prod" : ""}`;
  },
});
