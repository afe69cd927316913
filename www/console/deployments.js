// The deployments of an environment, and the way back to an earlier one.

import { Considered } from "./considered.js";
import { byId, count, make, moment, said, size } from "./dom.js";
import { Refusal } from "./session.js";

/** Characters of a commit's hash that a row has. */
const HASH = 8;

/** A revision as it fits in a row: of a long hash the first characters, with the mark that files were changed since. */
const revision = (text) => {
  const [, hash, mark] = /^([0-9a-f]{40,})(-.*)?$/.exec(text) ?? [];
  return make("code", {
    title: text,
    textContent: hash ? hash.slice(0, HASH) + (mark ?? "") : text,
  });
};

/** The id by which people know a deployment. */
export const nameOf = ({ id, short_id: name }) => make("code", { title: id, textContent: name });

/** What a deployment is, in one line: its id, when it was made, and what is said of it. */
const told = (one) => [
  nameOf(one),
  " of ",
  moment(one.created_at),
  ...(one.message ? [", ", said(one.message)] : []),
];

/** The same as text alone, for what is read out. */
const words = (one) => make("span", {}, ...told(one)).textContent;

/** Who made it, and from where. */
const maker = ({ deployed_by: by, client, network }) => {
  const from = [client, network].filter(Boolean).join(", ");
  if (!by) return from ? ["from ", said(from)] : [];
  return ["by ", said(by.username ?? by.sub), ...(from ? [" from ", said(from)] : [])];
};

/** One of them, as an item of a list; `ask` is called with it. */
export const deployment = (one, current, ask) => {
  const files = `${count(one.files, "file", "files")}, ${size(one.bytes)}`;
  const made = maker(one);
  const about = make(
    "div",
    {},
    make("span", {}, nameOf(one), " ", moment(one.created_at)),
    ...(one.message ? [make("span", { className: "host" }, said(one.message))] : []),
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

/** Questions asked so far. */
let turns = 0;
/** The button that rolls back, once it was asked for. */
let confirm;

/**
 * Asks whether an earlier deployment shall be shown in place of the current one,
 * and does it. `game` is the address that will show it, `done` is handed the
 * environment as it is then.
 */
export const askRollback = ({ session, environment, game, done }, one, current) => {
  const [dialog, yes, error] = ["rollback", "rollback-yes", "rollback-error"].map(byId);
  const turn = ++turns;
  const instead = current ? [", in place of ", ...told(current)] : [];
  byId("rollback-words").replaceChildren(
    `${game} will show the deployment `,
    ...told(one),
    ...instead,
    ".",
  );
  error.textContent = "";
  confirm ??= new Considered(yes);
  confirm.isBusy = false;
  confirm.show();
  byId("rollback-no").onclick = () => dialog.close();
  yes.onclick = async () => {
    confirm.isBusy = true;
    try {
      done(await session.ask(`${environment}/rollback`, { deployment: one.id }));
      // What is open by now may be a later question.
      if (turn === turns) dialog.close();
      const before = current ? ` Before, it was ${words(current)}.` : "";
      byId("news").textContent = `The deployment ${words(one)} is shown now.${before}`;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (turn === turns) error.textContent = refusal.message;
    } finally {
      if (turn === turns) confirm.isBusy = false;
    }
  };
  dialog.showModal();
};
