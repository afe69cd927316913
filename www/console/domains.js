// The domains of an environment: the list with the records that each needs, adding one, having its
// records looked at, making it the canonical address, and removing it.

import { allById, byId, make, moment, plain, userText } from "./dom.js";
import { Question } from "./question.js";
import { Refusal } from "./session.js";
import { copy } from "./variables.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

/** What each state means. */
const STATES = {
  pending: "Waits for its records",
  active: "Active",
  failing: "Failing: it is taken off after 72 hours",
};

/**
 * Returns a button about a domain.
 *
 * @param {string} label
 * @param {string} domain
 * @param {() => unknown} act
 */
const control = (label, domain, act) => {
  const button = make(
    "button",
    { className: "button second small-button", type: "button" },
    label,
    make("span", { className: "aside" }, " ", userText(domain)),
  );
  button.onclick = act;
  return button;
};

/**
 * Shows a record, with a button that copies its value.
 *
 * @param {string} kind
 * @param {string} name
 * @param {string} value
 */
const record = (kind, name, value) => {
  const code = make("code", {}, plain(value));
  const button = control("Copy", `the value of the ${kind} record`, () =>
    copy(button, value, code, `the value of the ${kind} record`),
  );
  return make(
    "div",
    { className: "record" },
    make("p", { className: "note" }, `${kind} `, make("code", {}, plain(name)), " → ", code),
    button,
  );
};

/** The domains on the page, of one environment at a time. */
class Domains {
  #desk;
  #mayChange;
  #question;

  /** @param {Desk} desk */
  constructor(desk) {
    this.#desk = desk;
    this.#mayChange = desk.project.role !== "viewer";
    const [dialog, yes, no, error] = allById(
      "domain-removal",
      "domain-removal-yes",
      "domain-removal-no",
      "domain-removal-error",
    );
    this.#question = new Question(dialog, yes, no, error);
    byId("domain").hidden = !this.#mayChange;
    byId("domain").onsubmit = (event) => {
      event.preventDefault();
      this.#add();
    };
  }

  /** @returns {`/api/projects/${string}/environments/${string}/domains`} */
  get #path() {
    return `/api/projects/${this.#desk.slug}/environments/${this.#desk.environment}/domains`;
  }

  /** Reads the list again. */
  async show() {
    const path = this.#path;
    await this.#guard("domains-error", async () => {
      const list = await this.#desk.session.ask(path);
      if (path === this.#path) this.#draw(list);
    });
  }

  /**
   * Runs an action, and shows why it was refused.
   *
   * @param {"domains-error" | "domain-error"} where
   * @param {() => Promise<void>} act
   */
  async #guard(where, act) {
    try {
      await act();
      byId(where).textContent = "";
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId(where).textContent = refusal.message;
    }
  }

  /** @param {Schemas["Domains"]} list */
  #draw({ domains }) {
    byId("domains").replaceChildren(...domains.map((domain) => this.#item(domain)));
    const canonical = domains.find((one) => one.canonical);
    const all = canonical
      ? `The environment’s other addresses redirect to ${plain(canonical.domain)} while it is active.`
      : "The game answers at each of them once its records are verified, besides its address on this platform.";
    byId("domains-state").textContent = domains.length
      ? all
      : "None yet: the game has its address on this platform alone.";
  }

  /** @param {Schemas["Domain"]} domain */
  #item(domain) {
    const { domain: name, state, detail, record: proof, target, looked_at: looked } = domain;
    const about = make(
      "div",
      { className: "domain" },
      make(
        "div",
        {},
        userText(name),
        make(
          "span",
          { className: "host" },
          domain.canonical ? `${STATES[state]} · canonical` : STATES[state],
          ...(looked ? [" · looked at ", moment(looked)] : []),
        ),
      ),
      ...(detail ? [make("p", { className: "note" }, plain(detail))] : []),
      record(proof.type, proof.name, proof.value),
      record("CNAME", name, target),
    );
    if (!this.#mayChange) return make("li", {}, about);
    const verify = control("Verify", name, () => this.#verify(name));
    const ways = make("p", { className: "ways" }, verify);
    if (domain.canonical)
      ways.append(
        " ",
        control("No longer canonical", name, () => this.#lead(name, false)),
      );
    else if (state === "active")
      ways.append(
        " ",
        control("Make canonical", name, () => this.#lead(name, true)),
      );
    ways.append(
      " ",
      control("Remove…", name, () => this.#ask(name)),
    );
    about.append(ways);
    return make("li", {}, about);
  }

  async #add() {
    const field = byId("domain-name");
    const button = byId("domain-add");
    button.disabled = true;
    await this.#guard("domain-error", async () => {
      const wanted = { domain: field.value.trim() };
      const { domain } = await this.#desk.session.ask(this.#path, wanted);
      field.value = "";
      byId("news").textContent = `${domain} is added. Create its records, then verify it.`;
      await this.show();
    });
    button.disabled = false;
    // In some browsers a disabled button loses the focus.
    if (document.activeElement === document.body) button.focus({ preventScroll: true });
  }

  /** @param {string} name */
  async #verify(name) {
    byId("news").textContent = `The records of ${name} are looked at…`;
    await this.#guard("domains-error", async () => {
      const path = `${this.#path}/${name}/verify`;
      const response = await this.#desk.session.open(path, { method: "POST" });
      /** @type {Schemas["Domain"]} */
      const { state, detail } = await response.json();
      byId("news").textContent = state === "active" ? `${name} is active.` : plain(detail ?? "");
      await this.show();
    });
  }

  /**
   * @param {string} name
   * @param {boolean} canonical
   */
  async #lead(name, canonical) {
    await this.#guard("domains-error", async () => {
      await this.#desk.session.open(`${this.#path}/${name}`, {
        method: "PUT",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ canonical }),
      });
      byId("news").textContent = canonical
        ? `${name} is the canonical address.`
        : `${name} is no longer the canonical address.`;
      await this.show();
    });
  }

  /** @param {string} name */
  #ask(name) {
    const path = `${this.#path}/${name}`;
    byId("domain-removal-words").replaceChildren(
      "The game no longer answers at ",
      userText(name),
      ". To have it again, it must be proven again, with another record.",
    );
    byId("domain-removal-yes").onclick = async () => {
      const isDone = await this.#question.confirm(async () => {
        await this.#desk.session.open(path, { method: "DELETE" });
        await this.show();
      });
      if (isDone) byId("news").textContent = `${name} is removed.`;
    };
    this.#question.ask();
  }
}

/**
 * The section about domains.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const domains = (desk) => {
  const shown = new Domains(desk);
  return { open: () => shown.show() };
};
