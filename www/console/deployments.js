// The deployments of an environment, and the way back to an earlier one.

import { Considered } from "./considered.js";
import { byId, count, make, moment, size } from "./dom.js";
import { Refusal } from "./session.js";

/** One of them, as an item of a list; `ask` is called with it and its time. */
export const deployment = (one, current, ask) => {
  const time = moment(one.created_at);
  const files = `${count(one.files, "file", "files")}, ${size(one.bytes)}`;
  const about = make("div", {}, time, make("span", { className: "host", textContent: files }));
  if (one.current) return make("li", {}, about, make("b", { className: "now", textContent: "Shown now" }));
  const isEarlier = !current || one.created_at < current.created_at;
  const button = make(
    "button",
    { className: "button second small-button", type: "button" },
    isEarlier ? "Roll back" : "Show again",
    make("span", { className: "aside", textContent: ` to the deployment of ${time.textContent}` }),
  );
  button.onclick = () => ask(one, time.textContent);
  return make("li", {}, about, button);
};

/** Questions asked so far. */
let turns = 0;
/** The button that rolls back, once it was asked for. */
let confirm;

/**
 * Asks whether an earlier deployment shall be shown, and does it. `game` is the
 * address that will show it, `done` is handed the environment as it is then.
 */
export const askRollback = ({ session, environment, game, done }, { id }, time) => {
  const [dialog, yes, error] = ["rollback", "rollback-yes", "rollback-error"].map(byId);
  const turn = ++turns;
  byId("rollback-words").textContent = `${game} will show the deployment of ${time}.`;
  error.textContent = "";
  confirm ??= new Considered(yes);
  confirm.isBusy = false;
  confirm.show();
  byId("rollback-no").onclick = () => dialog.close();
  yes.onclick = async () => {
    confirm.isBusy = true;
    try {
      done(await session.ask(`${environment}/rollback`, { deployment: id }));
      // What is open by now may be a later question.
      if (turn === turns) dialog.close();
      byId("news").textContent = `The deployment of ${time} is shown now.`;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (turn === turns) error.textContent = refusal.message;
    } finally {
      if (turn === turns) confirm.isBusy = false;
    }
  };
  dialog.showModal();
};
