// Who owns a project.

import { byId, make, moment, userText } from "./dom.js";

/** @import { Desk, Part } from "./project.js" */

/**
 * The section about the owner.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const owner = ({ project, isOwn }) => {
  const { owner: id, owner_username: username, created_at: made } = project;
  byId("owner").replaceChildren(
    ...(id
      ? [
          userText(username ?? "A player"),
          isOwn ? " (you), " : ", ",
          make("code", { textContent: id }),
        ]
      : ["The platform itself."]),
  );
  byId("made").replaceChildren(moment(made));
  return {};
};
