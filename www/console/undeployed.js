// What to do in an environment to which nothing is deployed yet.

import { allById, byId, make } from "./dom.js";
import { copy } from "./variables.js";

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
  open: () => {
    const [button, command] = allById("undeployed-copy", "undeployed-command");
    button.onclick = () => copy(button, command.textContent ?? "", command, "the commands");
  },
  draw: () => {
    const { environment, slug, now } = desk;
    byId("undeployed").hidden = Boolean(now.deployment);
    byId("undeployed-words").textContent =
      `Nothing is deployed to ${NAMES[environment]} yet. With the command line, three commands put it there; the last one in the game's folder:`;
    const { origin } = location;
    const lines = [
      `curl -fsSL ${origin}/cli/install.sh | sh`,
      `platform login --origin ${origin}`,
      `platform deploy --project ${slug}${environment === "prod" ? " --env prod" : ""}`,
    ];
    // A browser would break a line between the two hyphens of an option, and anywhere in an address.
    const parts = lines.join("\n").split(/(--\S+|\/cli\/)/);
    const whole = parts.map((part) =>
      part.startsWith("--") ? make("span", { className: "whole", textContent: part }) : part,
    );
    byId("undeployed-command").replaceChildren(
      ...whole.flatMap((part) => (part === "/cli/" ? [make("wbr"), part] : [part])),
    );
  },
});
