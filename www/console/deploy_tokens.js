// The deploy tokens of a project: the list, creating one, and revoking one. A new token's text is
// shown until it is hidden or the page is left, and is stored nowhere.

import { allById, byId, make, moment, userText } from "./dom.js";
import { Question } from "./question.js";
import { Refusal } from "./session.js";
import { copy } from "./variables.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */
/** @import { Session } from "./session.js" */

/** @typedef {Schemas["DeployTokenScope"]} Scope */

/** @type {Record<Scope, string>} */
const SCOPES = { "deploy-dev": "dev", "deploy-prod": "production", logs: "logs" };

const forget = () => {
  byId("deploy-token-shown").hidden = true;
  byId("deploy-token-text").textContent = "";
};

/** The deploy tokens on the page. */
class DeployTokens {
  #session;
  /** @type {`/api/projects/${string}/tokens`} */
  #path;
  #question;

  /**
   * `isOwner` says whether the viewer may create tokens.
   *
   * @param {Session} session
   * @param {string} slug
   * @param {boolean} isOwner
   */
  constructor(session, slug, isOwner) {
    this.#session = session;
    this.#path = `/api/projects/${slug}/tokens`;
    const [dialog, yes, no, error] = allById("revoke", "revoke-yes", "revoke-no", "revoke-error");
    this.#question = new Question(dialog, yes, no, error);
    byId("deploy-token-new").hidden = !isOwner;
    byId("deploy-token").onsubmit = (event) => {
      event.preventDefault();
      this.#create();
    };
    const text = byId("deploy-token-text");
    byId("deploy-token-copy").onclick = () =>
      copy(byId("deploy-token-copy"), text.textContent, text, "the deploy token");
    byId("deploy-token-forget").onclick = () => {
      forget();
      byId("deploy-tokens-heading").scrollIntoView({ block: "nearest" });
    };
  }

  /** Reads the list again. */
  async show() {
    try {
      this.#draw(await this.#session.ask(this.#path));
      byId("deploy-tokens-error").textContent = "";
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("deploy-tokens-error").textContent = refusal.message;
    }
  }

  /** @param {Schemas["DeployTokens"]} list */
  #draw({ tokens }) {
    byId("deploy-tokens").replaceChildren(...tokens.map((token) => this.#item(token)));
    byId("no-deploy-tokens").hidden = tokens.length > 0;
  }

  /** @param {Schemas["DeployToken"]} token */
  #item(token) {
    const { name, scopes, expires_at: expires, expired, used_on: used } = token;
    const button = make(
      "button",
      { className: "button second small-button", type: "button" },
      "Revoke…",
      make("span", { className: "aside" }, " the deploy token ", userText(name)),
    );
    button.onclick = () => this.#ask(token);
    const about = make(
      "div",
      {},
      userText(name),
      make("span", {
        className: "host",
        textContent: `For ${scopes.map((scope) => SCOPES[scope]).join(", ")}`,
      }),
      make(
        "span",
        { className: "host" },
        expired ? "Expired " : "Until ",
        moment(expires),
        used ? ` · last used on ${used}` : " · never used",
      ),
    );
    return make("li", {}, about, button);
  }

  async #create() {
    const button = byId("deploy-token-create");
    const inputs = allById("deploy-token-dev", "deploy-token-prod", "deploy-token-logs");
    const wanted = {
      name: byId("deploy-token-wanted").value,
      scopes: inputs
        .filter(({ checked }) => checked)
        .map(({ value }) => /** @type {Scope} */ (value)),
      days: Number(byId("deploy-token-days").value),
    };
    button.disabled = true;
    forget();
    byId("deploy-token-error").textContent = "";
    try {
      const { secret, name } = await this.#session.ask(this.#path, wanted);
      byId("deploy-token-text").textContent = secret;
      byId("deploy-token-name").replaceChildren(userText(name));
      byId("deploy-token-shown").hidden = false;
      byId("deploy-token-new").open = false;
      byId("deploy-token").reset();
      byId("deploy-token-copy").focus();
      byId("news").textContent = `The deploy token ${name} was created, and is shown.`;
      await this.show();
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("deploy-token-error").textContent = refusal.message;
    } finally {
      button.disabled = false;
      // In some browsers a disabled button loses the focus.
      if (document.activeElement === document.body) button.focus({ preventScroll: true });
    }
  }

  /** @param {Schemas["DeployToken"]} token */
  #ask({ id, name }) {
    byId("revoke-words").replaceChildren(
      "The next request with the token ",
      userText(name),
      " is refused. This cannot be undone.",
    );
    byId("revoke-yes").onclick = async () => {
      const isDone = await this.#question.confirm(async () => {
        await this.#session.open(`${this.#path}/${id}`, { method: "DELETE" });
        await this.show();
      });
      if (isDone) byId("news").textContent = `The deploy token ${name} is revoked.`;
    };
    this.#question.ask();
  }
}

/**
 * The section about deploy tokens.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const deployTokens = (desk) => {
  const { role } = desk.project;
  // Only the owner manages them, or an administrator, who has no role.
  if (role && role !== "owner") {
    byId("deploy-tokens-card").hidden = true;
    return {};
  }
  new DeployTokens(desk.session, desk.slug, desk.isOwn).show();
  return {};
};
