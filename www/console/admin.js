// What the pages of administration share: the check that the viewer is an administrator, how
// players and events are shown, and the question before an action.

import { Considered } from "./considered.js";
import { allById, byId, make, moment, plain, userText } from "./dom.js";
import { close, enter, isFinal } from "./gate.js";
import { Refusal } from "./session.js";

/** @import { Answer, ApiPath, Player, Schemas, Sent } from "../types/api.d.ts" */
/** @import { Inside } from "./dom.js" */
/** @import { Session } from "./session.js" */

/**
 * Makes a refusal by this page itself: why it cannot do what was asked for.
 *
 * @param {string} sentence
 */
export const refusalOf = (sentence) => new Refusal(0, { detail: sentence });

/**
 * Shows how to become an administrator, if the viewer is not one.
 *
 * @param {{ slug?: string }} refusal
 */
const tellOfGrant = ({ slug }) => (byId("grant").hidden = slug !== "not-allowed");

/**
 * Opens the page for administrators. Other viewers read how to become one.
 *
 * @param {(session: Session, player: Player) => Promise<void>} show
 */
export const open = (show) =>
  enter(async (session, player) => {
    byId("grant-command").textContent = `platform-server admin grant ${player.sub}`;
    try {
      await show(session, player);
    } catch (refusal) {
      if (refusal instanceof Refusal) tellOfGrant(refusal);
      throw refusal;
    }
  }, "You are a guest here. Sign in with an account that may administer.");

/**
 * Shows a refusal below the form that was sent, or in place of the page if nothing else on it
 * would work either.
 *
 * @param {unknown} refusal
 * @param {HTMLElement} error
 */
export const refuse = (refusal, error) => {
  if (!(refusal instanceof Refusal)) throw refusal;
  if (!isFinal(refusal)) {
    error.textContent = refusal.message;
    return;
  }
  tellOfGrant(refusal);
  close(refusal);
};

/**
 * Sends a change. Returns what the platform answers.
 *
 * @template {"POST" | "PUT" | "DELETE"} Method
 * @template {ApiPath} Path
 * @param {Session} session
 * @param {Method} method
 * @param {Path} path
 * @param {Sent<Method, Path>} [body]
 * @returns {Promise<Answer<Method, Path>>}
 */
export const send = async (session, method, path, body) => {
  const json = { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const response = await session.open(path, { method, ...(body === undefined ? {} : json) });
  return response.json();
};

/**
 * Adds these parameters to a path. Those that are empty are left out.
 *
 * @template {string} Path
 * @param {Path} path
 * @param {Record<string, string | number | null | undefined>} parameters
 * @returns {Path} the path with its query; by its type still the path
 */
export const withQuery = (path, parameters) => {
  const given = Object.entries(parameters).filter(([, value]) => value);
  if (!given.length) return path;
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return /** @type {Path} */ (`${path}?${query}`);
};

/**
 * Shows what has been done, and lets screen readers read it.
 *
 * @param {string} sentence
 */
export const announce = (sentence) => (byId("news").textContent = sentence);

/**
 * Fills a list, and shows the element `none` if the list is empty.
 *
 * @param {keyof PageElements} list
 * @param {keyof PageElements} none
 * @param {Node[]} rows
 */
export const fillList = (list, none, rows) => {
  byId(list).replaceChildren(...rows);
  byId(none).hidden = rows.length > 0;
};

/**
 * Makes an item of a list: a title, details in smaller letters, and links and buttons.
 *
 * @param {Inside | Inside[]} what
 * @param {Inside[]} [about]
 * @param {...Inside} ways
 */
export const listItem = (what, about = [], ...ways) =>
  make(
    "li",
    {},
    make(
      "div",
      {},
      make("span", { className: "what" }, ...[what].flat()),
      make("span", { className: "host" }, ...about),
    ),
    ...ways,
  );

/**
 * Makes a link to a player's page, with the player's name.
 *
 * @param {string} sub
 * @param {Record<string, string | undefined>} names
 */
export const playerLink = (sub, names) => {
  const name = names[sub];
  return make(
    "a",
    { href: `/admin/players/${encodeURIComponent(sub)}` },
    userText(name ?? `player ${sub.slice(-8)}`),
  );
};

/** @type {Record<string, string>} */
const KINDS = { guest: "Guest", account: "Account", merged: "Merged into another player" };

/**
 * Returns the kind of a player, in words.
 *
 * @param {Pick<Schemas["Player"], "state" | "linked">} player
 */
export const kindOf = ({ state, linked }) =>
  KINDS[state] ?? (linked ? "Suspended account" : "Suspended guest");

/**
 * Shows a player as an item of a list.
 *
 * @param {Schemas["Player"]} player
 */
export const playerRow = (player) => {
  const { sub, username, created_at } = player;
  return listItem(
    [
      playerLink(sub, { [sub]: username }),
      player.state === "suspended"
        ? make("b", { className: "bad", textContent: " suspended" })
        : "",
    ],
    [`${kindOf(player)} · since `, moment(created_at), " · ", make("code", { textContent: sub })],
  );
};

/**
 * The sentence for each kind of event. The event's own values replace the names in braces.
 *
 * @type {Record<string, string>}
 */
const SENTENCES = {
  linked: "{player} signed in for the first time, with {subject}",
  merged: "The guest {player} was merged into {other}, who signed in with {subject}",
  "signed-in": "{player} signed in with {subject}",
  created: "{player} made an account, with {subject}",
  renamed: "{player} took another name",
  "sign-in-failed": "A sign-in with {subject} failed",
  "signed-out": "{player} signed out",
  "guest-restored": "The guest {player} came back after it had been signed out",
  "sessions-ended": "Sessions of {player} were ended",
  suspended: "{player} was suspended",
  unsuspended: "The suspension of {player} was lifted",
  "deletion-asked": "{player} is to be deleted",
  "deletion-taken-back": "The deletion of {player} was taken back",
  "player-deleted": "A player was deleted",
  "device-approved": "{player} let {subject} sign in on a device",
  "device-denied": "{player} did not let {subject} sign in on a device",
  "device-revoked": "{player} was signed out of {subject} on a device",
  "device-token-reused": "{player} was signed out of {subject} on a device, whose token came twice",
  "key-added": "The signing key {subject} was added",
  "key-revoked": "The signing key {subject} was revoked",
  "admin-granted": "{player} became an administrator",
  "admin-revoked": "{player} is no longer an administrator",
  "project-transferred": "The project {subject} went to {player} from {other}",
  "administration-refused": "{player} was refused what administrators alone may do",
  "events-left-out": "More events of the kind {subject} came than are kept, and were left out",
  "project-created": "{player} made the project {subject}",
  deployed: "The project {subject} of {player} was deployed",
  "rolled-back": "The project {subject} of {player} was rolled back",
  "backend-changed": "The backend of the project {subject} of {player} was changed",
  "setting-changed": "A setting of the project {subject} of {player} was changed",
  "test-token-given": "A test player of the project {subject} of {player} was given a token",
  "project-administered": "The project {subject} of {player} was administered",
  "deploy-token-created": "A deploy token of the project {subject} of {player} was created",
  "deploy-token-revoked": "A deploy token of the project {subject} of {player} was revoked",
  "webhook-set": "The webhook of the project {subject} of {player} was set",
  "webhook-removed": "The webhook of the project {subject} of {player} was removed",
  "webhook-turned-off": "The webhook of the project {subject} of {player} was turned off",
  "error-decided": "Somebody decided about an error of the project {subject} of {player}",
  "errors-deleted": "Errors of the project {subject} of {player} were deleted",
  "preview-deployed": "A preview of the project {subject} of {player} was deployed",
  "preview-removed": "A preview of the project {subject} of {player} was removed",
  "domain-added": "A domain was claimed for the project {subject} of {player}",
  "domain-activated": "A domain of the project {subject} of {player} is in service",
  "domain-failing": "The records of a domain of the project {subject} of {player} are not in order",
  "domain-taken-off": "A domain of the project {subject} of {player} was taken out of service",
  "domain-removed": "A domain of the project {subject} of {player} was removed",
  "domain-canonical":
    "A domain of the project {subject} of {player} became the canonical address or no longer is",
  "invitation-created": "Somebody was invited to the project {subject} of {player}",
  "invitation-withdrawn": "An invitation to the project {subject} of {player} was withdrawn",
  "member-joined": "{other} joined the project {subject} of {player}",
  "member-role-changed": "{other} got another role in the project {subject} of {player}",
  "member-removed": "{other} is no longer in the project {subject} of {player}",
  "handover-offered": "{player} offered the project {subject} to {other}",
  "handover-withdrawn": "The offer of the project {subject} of {player} to {other} was withdrawn",
  "handover-declined": "{other} declined the project {subject} of {player}",
  "project-handed-on": "{player} handed the project {subject} on to {other}",
  "project-disabled": "The project {subject} of {player} was disabled",
  "project-enabled": "The project {subject} of {player} was enabled",
  "project-deleted": "The project {subject} of {player} was deleted",
  "project-restored": "The project {subject} of {player} was restored",
  "project-removed": "The deleted project {subject} was removed permanently",
};

/** A UUID, of which the first part tells deployments apart, as on the project page. */
const LONG_ID = /\b([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;

/**
 * @param {string} name
 * @param {Schemas["Event"]} event
 * @param {Record<string, string>} names
 * @param {boolean} isFirst whether the sentence begins with it
 */
const part = (name, event, names, isFirst) => {
  if (name === "subject") return userText(event.subject ?? "nothing", "subject");
  const sub = name === "other" ? event.other : event.player;
  return sub ? playerLink(sub, names) : isFirst ? "The platform" : "the platform";
};

/**
 * Shows an event as an item of a list.
 *
 * @param {Schemas["Event"]} event
 * @param {Record<string, string>} names
 */
export const eventRow = (event, names) => {
  // An administrator whose sign-in was too old was asked for a new one.
  const stepUp = event.kind === "administration-refused" && event.subject === "step-up-required";
  const sentence = stepUp
    ? "{player} was asked to sign in again before administering"
    : (SENTENCES[event.kind] ?? `${plain(event.kind)}: {player}`);
  const pieces = sentence
    .split(/\{(\w+)\}/)
    .map((piece, at, all) => (at % 2 ? part(piece, event, names, at === 1 && !all[0]) : piece));
  if (event.actor === "operator") pieces.push(", by the operator");
  // Who joins a project is named once.
  const by = event.admin ?? (event.kind === "member-joined" ? undefined : event.member);
  if (by) pieces.push(", by ", playerLink(by, names));
  // The reason is a sentence of its own.
  const end =
    event.kind === "suspended" && event.subject
      ? [": ", userText(event.subject, "subject")]
      : ["."];
  const { network, request } = event;
  const detail = event.detail?.replace(LONG_ID, "$1");
  const about = [
    moment(event.at),
    ...(detail
      ? [" · ", make("span", { title: plain(event.detail ?? "") }, userText(detail))]
      : []),
    ...(network ? [` · from ${plain(network)}`] : []),
    ...(request ? [" · request ", make("code", { className: "whole" }, userText(request))] : []),
  ];
  return listItem([...pieces, ...end], about);
};

/**
 * Finds the player who has exactly this name or id.
 *
 * @param {Session} session
 * @param {string} text
 */
export const findPlayer = async (session, text) => {
  if (!text) throw refusalOf("Write a name or an id.");
  const { players } = await session.ask(withQuery("/api/admin/players", { query: text }));
  const wanted = text.toLowerCase();
  const found = players.find(
    ({ sub, username }) => sub === wanted || username.toLowerCase() === wanted,
  );
  if (found) return found;
  if (!players.length) throw refusalOf("This player does not exist.");
  const names = players.slice(0, 5).map(({ username }) => plain(username));
  throw refusalOf(`Nobody is called just that. These begin so: ${names.join(", ")}.`);
};

/** How many questions were asked so far. */
let turns = 0;
/**
 * The button that confirms, from the first question on.
 *
 * @type {Considered | undefined}
 */
let confirm;

/**
 * @typedef {object} TextField
 * @property {string} label
 * @property {string} rules
 * @property {number} most how many characters
 * @property {boolean} isProse
 */

/**
 * @typedef {object} Question
 * @property {string} heading
 * @property {(Inside | Inside[])[]} words
 * @property {string} yes
 * @property {boolean} [isGrave]
 * @property {boolean | TextField} [takesText]
 * @property {(text: string) => Promise<Question | void>} act
 */

/**
 * Asks the viewer before an action. `act` does it, with the text that was written if the question
 * takes text, and may return another question. `takesText` describes the text field, on a page
 * that asks for different texts.
 *
 * @param {Question} question
 */
export const ask = ({ heading, words, yes, isGrave = false, takesText = false, act }) => {
  const [dialog, form, button, cancel, error] = allById(
    "ask",
    "ask-form",
    "ask-yes",
    "ask-no",
    "ask-error",
  );
  const [field, text] = allById("ask-field", "ask-text");
  const turn = ++turns;
  // When the platform answers, this question may be closed, or another one may be open.
  const isAsked = () => turn === turns && dialog.open;
  /** @param {string} sentence */
  const explain = (sentence) => {
    error.textContent = sentence;
    if (!takesText) return;
    field.classList.toggle("wrong", Boolean(sentence));
    text.ariaInvalid = sentence ? "true" : null;
    if (sentence) text.focus();
  };
  byId("ask-heading").textContent = heading;
  byId("ask-words").replaceChildren(
    ...words.map((sentence) => make("p", {}, ...[sentence].flat())),
  );
  button.textContent = yes;
  button.classList.toggle("danger", isGrave);
  if (field) field.hidden = !takesText;
  if (takesText) text.value = "";
  if (typeof takesText === "object") {
    const { label, rules, most, isProse } = takesText;
    /** @type {HTMLElement} */ (field.querySelector("label")).textContent = label;
    byId("ask-rules").textContent = rules;
    Object.assign(text, {
      maxLength: most,
      spellcheck: isProse,
      autocapitalize: isProse ? "sentences" : "none",
    });
  }
  explain("");
  confirm ??= new Considered(button);
  const considered = confirm;
  considered.isBusy = false;
  considered.show();
  cancel.onclick = () => dialog.close();
  form.onsubmit = async (event) => {
    event.preventDefault();
    considered.isBusy = true;
    explain("");
    try {
      const next = await act(takesText ? text.value.replace(/\s+/g, " ").trim() : "");
      if (!isAsked()) return;
      if (next) ask(next);
      else {
        dialog.close();
        // If the button that had the focus is gone, the focus moves to the heading.
        if (document.activeElement === document.body) byId("heading").focus();
      }
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (isAsked()) explain(refusal.message);
    } finally {
      if (turn === turns) considered.isBusy = false;
    }
  };
  if (!dialog.open) dialog.showModal();
  (takesText ? text : cancel).focus();
};

/**
 * Makes a bold name, for a question.
 *
 * @param {string} name
 */
export const boldName = (name) => make("b", {}, userText(name));
