// Taking a project down and putting it up again: what it is now, and the
// question before it is changed.

import { Considered } from "./considered.js";
import { byId, make, moment, said } from "./dom.js";
import { Refusal } from "./session.js";

/** What each button asks and does; `note` says how it went. */
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
      "Its game is shown to nobody from now on. For seven days it can be restored; then its deployments, settings, logs and numbers are removed for good. Nobody gets its name again.",
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

const send = (session, slug, change) => {
  if (change === "delete") return session.open(`/api/projects/${slug}`, { method: "DELETE" });
  const reason = byId("takedown-reason").value.replace(/\s+/g, " ").trim() || null;
  const body = CHANGES[change].takesReason ? JSON.stringify({ reason }) : undefined;
  const headers = body ? { "Content-Type": "application/json" } : {};
  return session.open(`/api/projects/${slug}/${change}`, { method: "POST", headers, body });
};

/** Says of a project that it is not shown, since when, and why. */
export const standingWords = ({ state, since, by, reason, removed_at: removal }) => {
  if (state === "live") return [];
  if (state === "owner-suspended") {
    return [
      "Down since ",
      moment(since),
      ": its owner is suspended. It is shown again when the suspension is lifted.",
    ];
  }
  const who = by === "platform" ? "those who run the platform" : "its owner";
  const why = reason ? [": ", said(reason)] : ["."];
  if (state !== "deleted") return ["Disabled by ", who, " at ", moment(since), ...why];
  return [
    "Deleted by ",
    who,
    " at ",
    moment(since),
    ". It will be removed for good at ",
    moment(removal),
    ".",
  ];
};

/** What can be done about a project that is not taken down, and what comes of it. */
const RULES =
  "Disabled, the game is shown to nobody until the project is enabled again. Deleted, the project can be restored for seven days, and is then removed for good.";

/** Whether it is the viewer's own project. */
let isOwn = false;

/** Shows how the project stands, and what `player` can do about it. */
export const drawStanding = ({ standing, owner }, player) => {
  isOwn = owner === player.sub;
  const { state, by } = standing;
  // An element is in one place, so each place has its own.
  const words = standingWords(standing);
  byId("standing").hidden = words.length === 0;
  byId("standing").replaceChildren(...words);
  byId("takedown-state").replaceChildren(
    ...(words.length ? standingWords(standing) : ["The game is shown."]),
  );
  const isByPlatform = by === "platform" && state !== "owner-suspended";
  const offered =
    {
      live: ["disable", "delete"],
      "owner-suspended": ["disable", "delete"],
      disabled: ["enable", "delete"],
      deleted: ["restore"],
    }[state] ?? [];
  // What would be refused is not offered.
  const refused = isByPlatform && isOwn ? ["enable", "restore"] : [];
  for (const change of Object.keys(CHANGES)) {
    byId(`takedown-${change}`).hidden = !offered.includes(change) || refused.includes(change);
  }
  const asks = isOwn ? " Ask them." : "";
  byId("takedown-rules").textContent = isByPlatform
    ? `Those who run the platform took it down, and only they can put it up again.${asks}`
    : state === "live"
      ? RULES
      : "";
};

/** Questions asked so far. */
let turns = 0;
/** The button that does what was asked, once anything was. */
let confirm;

const ask = (session, slug, change, done) => {
  const { heading, words, yes: label, takesReason, note } = CHANGES[change];
  const [dialog, form, yes, error] = [
    "takedown",
    "takedown-form",
    "takedown-yes",
    "takedown-error",
  ].map(byId);
  const turn = ++turns;
  byId("takedown-question").textContent = heading;
  byId("takedown-words").replaceChildren(make("span", { textContent: words }));
  byId("takedown-reason-field").hidden = !takesReason;
  byId("takedown-reason").value = "";
  byId("takedown-reason-label").textContent = isOwn
    ? "Why (optional, shown on this page)"
    : "Why (its owner reads it)";
  error.textContent = "";
  yes.textContent = label;
  yes.classList.toggle("danger", change === "delete");
  confirm ??= new Considered(yes);
  confirm.isBusy = false;
  confirm.show();
  byId("takedown-no").onclick = () => dialog.close();
  form.onsubmit = async (event) => {
    event.preventDefault();
    confirm.isBusy = true;
    try {
      const response = await send(session, slug, change);
      done(await response.json());
      if (turn === turns) dialog.close();
      byId("news").textContent = note;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (turn === turns) error.textContent = refusal.message;
    } finally {
      if (turn === turns) confirm.isBusy = false;
    }
  };
  dialog.showModal();
};

/** Lets the project be taken down and put up. `done` is handed it after each change. */
export const offerTakedown = (session, slug, done) => {
  for (const change of Object.keys(CHANGES)) {
    byId(`takedown-${change}`).onclick = () => ask(session, slug, change, done);
  }
};
