// Whether a project is shown, and why it is not.

import { byId, moment, userText } from "./dom.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Inside } from "./dom.js" */

/**
 * Returns why a project is not shown and since when, in words; nothing if it is shown.
 *
 * @param {Schemas["Standing"]} standing
 * @returns {Inside[]}
 */
export const standingWords = ({ state, since, by, reason, removed_at: removal }) => {
  if (state === "live") return [];
  // Every state but `live` has a time.
  const down = moment(/** @type {string} */ (since));
  if (state === "owner-suspended") {
    return [
      "Down since ",
      down,
      ": its owner is suspended. It is shown again when the suspension is lifted.",
    ];
  }
  const who = by === "platform" ? "the platform's operators" : "its owner";
  const why = reason ? [": ", userText(reason)] : ["."];
  if (state !== "deleted") return ["Disabled by ", who, " at ", down, ...why];
  return [
    "Deleted by ",
    who,
    " at ",
    down,
    ". It will be removed permanently at ",
    moment(/** @type {string} */ (removal)),
    ".",
  ];
};

/**
 * Shows at the top of the page why the project is not shown.
 *
 * @param {Schemas["Project"]} project
 */
export const drawStanding = ({ standing }) => {
  const words = standingWords(standing);
  byId("standing").hidden = words.length === 0;
  byId("standing").replaceChildren(...words);
};
