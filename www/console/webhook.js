// Where a project's alerts about errors are sent. A new secret is shown until it is hidden or the
// page is left, and is stored nowhere.

import { Considered } from "./considered.js";
import { allById, byId, make, moment, plain } from "./dom.js";
import { Refusal } from "./session.js";
import { copy } from "./variables.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

const forget = () => {
  byId("webhook-shown").hidden = true;
  byId("webhook-secret").textContent = "";
};

/** @param {Schemas["WebhookDelivery"]} last */
const outcome = ({ status, error }) =>
  status === null ? `there was no response: ${plain(error ?? "")}` : `it responded with ${status}`;

/** @param {Schemas["PlayerEventDelivery"]} delivery */
const delivered = ({ delivered_at, next_at, last }) => {
  if (delivered_at) return ["Delivered ", moment(delivered_at)];
  const last_words = last ? `: ${outcome(last)}` : "";
  if (next_at) return [`Not delivered yet${last_words}. Next try `, moment(next_at)];
  return [`Given up${last_words}`];
};

/** The section on the page. */
class Webhook {
  #session;
  /** @type {`/api/projects/${string}/webhook`} */
  #path;
  #mayChange;
  #remove;
  #rotate;

  /** @param {Desk} desk */
  constructor({ session, slug, project }) {
    this.#session = session;
    this.#path = `/api/projects/${slug}/webhook`;
    this.#mayChange = project.role !== "viewer";
    byId("webhook").hidden = !this.#mayChange;
    byId("webhook").onsubmit = (event) => {
      event.preventDefault();
      this.#save(false);
    };
    byId("webhook-test").onclick = () => this.#test();
    byId("webhook-rotate").onclick = () => this.#save(true);
    byId("webhook-remove").onclick = () => this.#takeAway();
    // These two act without a question.
    const [remove, rotate] = allById("webhook-remove", "webhook-rotate");
    this.#remove = new Considered(remove);
    this.#rotate = new Considered(rotate);
    const secret = byId("webhook-secret");
    byId("webhook-copy").onclick = () =>
      copy(byId("webhook-copy"), secret.textContent, secret, "the secret");
    byId("webhook-forget").onclick = () => {
      forget();
      byId("webhook-url").focus();
    };
  }

  /** Reads it again. Text that was not saved stays. */
  async show() {
    await this.#guard(async () => {
      const { webhook } = await this.#session.ask(this.#path);
      this.#draw(webhook);
    });
  }

  /** Puts the saved address into the field. */
  async open() {
    await this.#guard(async () => {
      const { webhook } = await this.#session.ask(this.#path);
      byId("webhook-url").value = webhook?.url ?? "";
      byId("webhook-errors").checked = webhook?.events.includes("errors") ?? true;
      byId("webhook-players").checked = webhook?.events.includes("players") ?? false;
      this.#draw(webhook);
      if (webhook) await this.#showLog();
    });
  }

  /** @param {() => Promise<void>} work */
  async #guard(work) {
    try {
      await work();
      this.#refuse("");
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      this.#refuse(refusal.message, refusal.slug === "invalid-request");
    }
  }

  /**
   * @param {string} sentence
   * @param {boolean} [isAddress] whether the address is wrong
   */
  #refuse(sentence, isAddress = false) {
    byId("webhook-error").textContent = sentence;
    byId("webhook-url").ariaInvalid = isAddress ? "true" : null;
    byId("webhook-url-field").classList.toggle("wrong", isAddress);
    if (isAddress) byId("webhook-url").focus();
  }

  /** Shows what was sent about deleted players. */
  async #showLog() {
    this.#drawLog(await this.#session.ask(`${this.#path}/deliveries`));
  }

  /** @param {Schemas["PlayerEventDeliveries"]} log */
  #drawLog({ deliveries }) {
    byId("webhook-log").hidden = !deliveries.length;
    const items = deliveries.map((delivery) => {
      const words = make("div", {}, ...delivered(delivery), ".");
      if (!this.#mayChange) return make("li", {}, words);
      const again = make(
        "button",
        { className: "button second small-button", type: "button" },
        "Send again",
        make("span", { className: "aside", textContent: ` number ${delivery.id}` }),
      );
      again.onclick = () => this.#replay(delivery.id);
      return make("li", {}, words, again);
    });
    byId("webhook-deliveries").replaceChildren(...items);
  }

  /** @param {number} id */
  async #replay(id) {
    await this.#guard(async () => {
      const path = `${this.#path}/deliveries/${id}/replay`;
      const response = await this.#session.open(path, { method: "POST" });
      this.#drawLog(await response.json());
      byId("news").textContent = "It is sent again.";
    });
  }

  /** @param {Schemas["Webhook"] | null} webhook */
  #draw(webhook) {
    const hasMore = webhook !== null && byId("webhook-remove").hidden;
    for (const button of allById("webhook-test", "webhook-rotate", "webhook-remove"))
      button.hidden = webhook === null;
    if (hasMore) for (const control of [this.#remove, this.#rotate]) control.show();
    byId("webhook-state").replaceChildren(...this.#words(webhook));
  }

  /** @param {Schemas["Webhook"] | null} webhook */
  #words(webhook) {
    if (!webhook)
      return [
        this.#mayChange
          ? "Nobody is told about errors. Enter the address of a program of yours."
          : "Nobody is told about errors: the project has no webhook.",
      ];
    const topics = { errors: "errors", players: "deleted players" };
    const about = webhook.events.map((event) => topics[event]).join(" and ");
    if (webhook.off_at)
      return [
        "The webhook was turned off ",
        moment(webhook.off_at),
        ", because it responded with 410, which means that it is gone.",
        this.#mayChange ? " Save it to turn it on again." : "",
      ];
    const told = `A webhook is told about ${about}.`;
    if (!webhook.last) return [told, " Nothing was sent to it yet."];
    return [told, " Last ", moment(webhook.last.at), `: ${outcome(webhook.last)}.`];
  }

  /**
   * @param {string} path
   * @param {"PUT" | "DELETE"} method
   * @param {Schemas["NewWebhook"]} [body]
   */
  async #send(path, method, body) {
    const headers = { "Content-Type": "application/json" };
    const sent = body ? { method, headers, body: JSON.stringify(body) } : { method };
    const response = await this.#session.open(path, sent);
    return response.json();
  }

  /** @param {boolean} rotates whether to replace the secret */
  async #save(rotates) {
    const field = byId("webhook-url");
    const url = field.value.trim();
    if (!url)
      return this.#refuse(
        "A webhook has an address, such as https://hooks.example/platform.",
        true,
      );
    /** @type {Schemas["WebhookEvents"][]} */
    const events = [];
    if (byId("webhook-errors").checked) events.push("errors");
    if (byId("webhook-players").checked) events.push("players");
    byId("webhook-saved").textContent = "";
    await this.#guard(async () => {
      /** @type {Schemas["SetWebhook"]} */
      const { webhook, secret } = await this.#send(this.#path, "PUT", {
        url,
        new_secret: rotates,
        events,
      });
      field.value = webhook.url ?? "";
      this.#draw(webhook);
      const words = rotates ? "The secret is replaced." : "The webhook is saved.";
      byId("webhook-saved").textContent = words;
      byId("news").textContent = words;
      if (secret === null) return;
      byId("webhook-secret").textContent = secret;
      byId("webhook-shown").hidden = false;
      byId("webhook-copy").focus();
    });
  }

  async #test() {
    const button = byId("webhook-test");
    button.disabled = true;
    byId("webhook-saved").textContent = "A test is on its way…";
    await this.#guard(async () => {
      const response = await this.#session.open(`${this.#path}/test`, { method: "POST" });
      /** @type {Schemas["WebhookTest"]} */
      const { sentence } = await response.json();
      byId("webhook-saved").replaceChildren(make("span", { role: "status" }, plain(sentence)));
      await this.show();
    });
    button.disabled = false;
    // In some browsers a disabled button loses the focus.
    if (document.activeElement === document.body) button.focus({ preventScroll: true });
  }

  async #takeAway() {
    await this.#guard(async () => {
      await this.#send(this.#path, "DELETE");
      forget();
      this.#draw(null);
      byId("webhook-saved").textContent = "The webhook is removed. Save makes a new one.";
      byId("news").textContent = "The webhook is removed.";
      byId("webhook-url").focus();
    });
  }
}

/**
 * The section about alerts.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const webhook = (desk) => {
  const section = new Webhook(desk);
  section.open();
  return {};
};
