// The deployments of an environment, and how to roll back to an earlier one.

import { allById, byId, count, make, moment, size, userText } from "./dom.js";
import { Question } from "./question.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Inside } from "./dom.js" */
/** @import { Desk, Part } from "./project.js" */
/** @import { Session } from "./session.js" */

/** How many characters of a commit's hash are shown. */
const HASH = 8;

/**
 * Shortens a revision to the first characters of its hash and the mark for changed files.
 *
 * @param {string} text
 */
const revision = (text) => {
  const [, hash, mark] = /^([0-9a-f]{40,})(-.*)?$/.exec(text) ?? [];
  return make("code", {
    title: text,
    textContent: hash ? hash.slice(0, HASH) + (mark ?? "") : text,
  });
};

/**
 * Shows the short id of a deployment.
 *
 * @param {Schemas["Deployment"]} deployment
 */
export const nameOf = ({ id, short_id: name }) => make("code", { title: id, textContent: name });

/**
 * Describes a deployment in one line: its id, its time, and its message.
 *
 * @param {Schemas["Deployment"]} one
 * @returns {Inside[]}
 */
const told = (one) => [
  nameOf(one),
  " of ",
  moment(one.created_at),
  ...(one.message ? [", ", userText(one.message)] : []),
];

/**
 * Describes a deployment as text, for screen readers.
 *
 * @param {Schemas["Deployment"]} one
 */
const words = (one) => make("span", {}, ...told(one)).textContent;

/**
 * Describes who made a deployment, and from where.
 *
 * @param {Schemas["Deployment"]} one
 */
export const maker = ({ deployed_by: by, deploy_token: token, client, network }) => {
  const from = [token && `the deploy token ${token}`, client, network].filter(Boolean).join(", ");
  if (!by) return from ? ["from ", userText(from)] : [];
  return ["by ", userText(by.username ?? by.sub), ...(from ? [" from ", userText(from)] : [])];
};

/**
 * @typedef {(one: Schemas["Deployment"], current: Schemas["Deployment"] | null) => void}
 *   AskRollback
 */

/**
 * Shows a deployment as an item of a list. `ask` is called when its button is pressed.
 *
 * @param {Schemas["Deployment"]} one
 * @param {Schemas["Deployment"] | null} current
 * @param {AskRollback} ask
 */
export const deployment = (one, current, ask) => {
  const files = `${count(one.files, "file", "files")}, ${size(one.bytes)}`;
  const made = maker(one);
  const about = make(
    "div",
    {},
    make("span", {}, nameOf(one), " ", moment(one.created_at)),
    ...(one.message ? [make("span", { className: "host" }, userText(one.message))] : []),
    make(
      "span",
      { className: "host" },
      files,
      ...(made.length ? [" \u00b7 ", ...made] : []),
      ...(one.revision ? [" \u00b7 ", revision(one.revision)] : []),
    ),
  );
  if (one.current)
    return make("li", {}, about, make("b", { className: "now", textContent: "Shown now" }));
  const isEarlier = !current || one.created_at < current.created_at;
  const button = make(
    "button",
    { className: "button second small-button", type: "button" },
    isEarlier ? "Roll back" : "Show again",
    make("span", {
      className: "aside",
      textContent: ` to the deployment of ${moment(one.created_at).textContent}, ${one.short_id}`,
    }),
  );
  button.onclick = () => ask(one, current);
  return make("li", {}, about, button);
};

/**
 * The page's dialog for roll-backs, from the first question on.
 *
 * @type {Question | undefined}
 */
let question;

/**
 * @typedef {object} Place
 * @property {Session} session
 * @property {`/api/projects/${string}/environments/${string}`} environment
 * @property {string} game
 * @property {(now: Schemas["Environment"]) => void} done
 */

/**
 * Asks whether to roll back to an earlier deployment, and does it. `game` is the game's address;
 * `done` is called with the environment after the roll-back.
 *
 * @param {Place} place
 * @param {Schemas["Deployment"]} one
 * @param {Schemas["Deployment"] | null} current
 */
export const askRollback = ({ session, environment, game, done }, one, current) => {
  const [dialog, yes, no, error] = allById(
    "rollback",
    "rollback-yes",
    "rollback-no",
    "rollback-error",
  );
  question ??= new Question(dialog, yes, no, error);
  const asked = question;
  const instead = current ? [", in place of ", ...told(current)] : [];
  byId("rollback-words").replaceChildren(
    `${game} will show the deployment `,
    ...told(one),
    ...instead,
    ".",
  );
  yes.onclick = async () => {
    const isDone = await asked.confirm(async () =>
      done(await session.ask(`${environment}/rollback`, { deployment: one.id })),
    );
    if (!isDone) return;
    const before = current ? ` Before, it was ${words(current)}.` : "";
    byId("news").textContent = `The deployment ${words(one)} is shown now.${before}`;
  };
  asked.ask();
};

/**
 * The section about the deployments of an environment.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const deployments = (desk) => {
  let drawn = "";
  return {
    draw: () => {
      const { now, environment, session, path, project } = desk;
      /** @param {Schemas["Environment"]} then */
      const done = (then) => desk.takes(environment, then);
      /** @type {AskRollback} */
      const ask = (one, current) =>
        askRollback({ session, environment: path, game: now.url, done }, one, current);
      // Only what has changed is drawn again: the viewer may be using the rest.
      const listed = JSON.stringify([path, now.deployments]);
      if (listed !== drawn) {
        byId("deployments").replaceChildren(
          ...now.deployments.map((one) => deployment(one, now.deployment, ask)),
        );
      }
      drawn = listed;
      byId("no-deployments").hidden = now.deployments.length > 0;
      const { bytes, quota_bytes: quota } = project.files;
      byId("files-room").textContent = quota
        ? `Deployments take ${size(bytes)} of ${size(quota)}; earlier ones go first.`
        : `Deployments take ${size(bytes)}.`;
    },
  };
};
