// Disabling, deleting and restoring a project: its state, and the question before a change.

import { allById, byId, make } from "./dom.js";
import { Question } from "./question.js";
import { standingWords } from "./standing.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */
/** @import { Session } from "./session.js" */

/** @typedef {"disable" | "enable" | "delete" | "restore"} Change */

/**
 * The question of each change; `note` is shown when it is done.
 *
 * @type {Record<Change, { heading: string, words: string, yes: string, note: string,
 *   takesReason?: boolean }>}
 */
const CHANGES = {
  disable: {
    heading: "Disable this project?",
    words:
      "Its game is shown to nobody, in neither environment, and nobody gets tokens for it. Browsers that open it forget what it stored in them. You can deploy meanwhile, and enable it again.",
    yes: "Disable",
    takesReason: true,
    note: "The project is disabled.",
  },
  enable: {
    heading: "Enable this project?",
    words: "Its game is shown again at once.",
    yes: "Enable",
    note: "The project is enabled.",
  },
  delete: {
    heading: "Delete this project?",
    words:
      "Its game is shown to nobody from now on. For seven days it can be restored; then its deployments, settings, logs and numbers are removed permanently. Nobody gets its name again.",
    yes: "Delete",
    note: "The project is deleted.",
  },
  restore: {
    heading: "Restore this project?",
    words: "It is as it was before it was deleted.",
    yes: "Restore",
    note: "The project is restored.",
  },
};

/**
 * @param {Session} session
 * @param {string} slug
 * @param {Change} change
 */
const send = (session, slug, change) => {
  if (change === "delete") return session.open(`/api/projects/${slug}`, { method: "DELETE" });
  const reason = byId("takedown-reason").value.replace(/\s+/g, " ").trim() || null;
  const body = CHANGES[change].takesReason ? JSON.stringify({ reason }) : undefined;
  /** @type {Record<string, string>} */
  const headers = body ? { "Content-Type": "application/json" } : {};
  return session.open(`/api/projects/${slug}/${change}`, { method: "POST", headers, body });
};

const NAMES = /** @type {Change[]} */ (Object.keys(CHANGES));

/** What disabling and deleting do, for a project that is shown. */
const RULES =
  "Disabled, the game is shown to nobody until the project is enabled again. Deleted, the project can be restored for seven days, and is then removed permanently.";

/**
 * Shows the project's state and the changes that this viewer may make.
 *
 * @param {Schemas["Project"]} project
 * @param {boolean} isOwn whether the viewer owns it
 */
const draw = ({ standing }, isOwn) => {
  const { state, by } = standing;
  const words = standingWords(standing);
  byId("takedown-state").replaceChildren(...(words.length ? words : ["The game is shown."]));
  const isByPlatform = by === "platform" && state !== "owner-suspended";
  const offered =
    {
      live: ["disable", "delete"],
      "owner-suspended": ["disable", "delete"],
      disabled: ["enable", "delete"],
      deleted: ["restore"],
    }[state] ?? [];
  // Changes that the platform would refuse are not offered.
  const refused = isByPlatform && isOwn ? ["enable", "restore"] : [];
  for (const change of NAMES) {
    byId(`takedown-${change}`).hidden = !offered.includes(change) || refused.includes(change);
  }
  const asks = isOwn ? " Ask them." : "";
  byId("takedown-rules").textContent = isByPlatform
    ? `The platform's operators took it down, and only they can enable it again.${asks}`
    : state === "live"
      ? RULES
      : "";
};

/**
 * The page's dialog for these changes, from the first question on.
 *
 * @type {Question | undefined}
 */
let question;

/**
 * @param {Desk} desk
 * @param {Change} change
 */
const ask = (desk, change) => {
  const { heading, words, yes: label, takesReason, note } = CHANGES[change];
  const [dialog, yes, no, error] = allById(
    "takedown",
    "takedown-yes",
    "takedown-no",
    "takedown-error",
  );
  question ??= new Question(dialog, yes, no, error);
  const asked = question;
  byId("takedown-question").textContent = heading;
  byId("takedown-words").replaceChildren(make("span", { textContent: words }));
  byId("takedown-reason-field").hidden = !takesReason;
  byId("takedown-reason").value = "";
  byId("takedown-reason-label").textContent = desk.isOwn
    ? "Why (optional, shown on this page)"
    : "Why (its owner reads it)";
  yes.textContent = label;
  yes.classList.toggle("danger", change === "delete");
  byId("takedown-form").onsubmit = async (event) => {
    event.preventDefault();
    const isDone = await asked.confirm(async () => {
      const response = await send(desk.session, desk.slug, change);
      desk.takesProject(await response.json());
    });
    if (isDone) byId("news").textContent = note;
  };
  asked.ask();
};

/**
 * The section that takes the project down.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const takedown = (desk) => {
  const { role } = desk.project;
  // Only the owner takes a project down, or an administrator, who has no role.
  if (role && role !== "owner") {
    byId("takedown-card").hidden = true;
    return {};
  }
  for (const change of NAMES) byId(`takedown-${change}`).onclick = () => ask(desk, change);
  return { draw: () => draw(desk.project, desk.isOwn) };
};
