// The previews of a project: the list, a QR code with which a phone opens one, and removing one.

import { maker } from "./deployments.js";
import { allById, byId, make, moment, userText } from "./dom.js";
import { Question } from "./question.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */
/** @import { Session } from "./session.js" */

/** Pixels of the picture for each module of a code: few, as the style enlarges them. */
const MODULE = 4;

/**
 * Draws a QR code. The canvas has the code's own quiet zone, and is black on white in the dark as
 * well: cameras expect that.
 *
 * @param {Schemas["QrCode"]} code
 */
const picture = ({ url, size, path }) => {
  const canvas = make("canvas", {
    width: size * MODULE,
    height: size * MODULE,
    role: "img",
    ariaLabel: `QR code of ${url}`,
  });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(MODULE, MODULE);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, size, size);
  context.fillStyle = "#000";
  context.fill(new Path2D(path));
  return canvas;
};

/**
 * A button of a preview's item. Screen readers hear `more` as well, which names the preview.
 *
 * @param {string} words
 * @param {string} more
 * @param {() => void} onclick
 */
const button = (words, more, onclick) =>
  make(
    "button",
    { className: "button second small-button", type: "button", onclick },
    words,
    make("span", { className: "aside", textContent: ` ${more}` }),
  );

/** The previews on the page. */
class Previews {
  #session;
  #slug;
  #question;
  /** The list that is shown, as JSON: what has not changed keeps its focus. */
  #shown = "";
  /** How many codes were asked for so far. */
  #turn = 0;

  /**
   * @param {Session} session
   * @param {string} slug
   */
  constructor(session, slug) {
    this.#session = session;
    this.#slug = slug;
    const [dialog, yes, no, error] = allById(
      "preview-removal",
      "preview-removal-yes",
      "preview-removal-no",
      "preview-removal-error",
    );
    this.#question = new Question(dialog, yes, no, error);
    byId("preview-code-close").onclick = () => byId("preview-code").close();
  }

  /** @returns {`/api/projects/${string}/previews`} */
  get #path() {
    return `/api/projects/${this.#slug}/previews`;
  }

  /** Reads the list again. */
  async show() {
    try {
      this.#draw(await this.#session.ask(this.#path));
      byId("previews-error").textContent = "";
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("previews-error").textContent = refusal.message;
    }
  }

  /** @param {Schemas["Previews"]} list */
  #draw(list) {
    const shown = JSON.stringify(list);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const { previews, most } = list;
    byId("previews").replaceChildren(...previews.map((preview) => this.#item(preview)));
    byId("no-previews").hidden = previews.length > 0;
    byId("previews-room").textContent = previews.length
      ? `${previews.length} of ${most}. A preview is removed 14 days after its last use.`
      : "";
  }

  /** @param {Schemas["Preview"]} preview */
  #item(preview) {
    const { name, url, deployment, used_on: used, expires_at: ends } = preview;
    const { created_at: at, message } = deployment;
    const about = make(
      "div",
      {},
      make("a", { href: url, target: "_blank", rel: "noopener", textContent: name }),
      ...(message ? [make("span", { className: "host" }, userText(message))] : []),
      make("span", { className: "host" }, "Deployed ", moment(at), " ", ...maker(deployment)),
      make("span", {
        className: "host",
        textContent: `Last used on ${used} · ends on ${ends.slice(0, 10)} if nobody opens it`,
      }),
    );
    const ways = make(
      "div",
      { className: "ways" },
      button("QR code", `of the preview ${name}`, () => this.#code(preview)),
      button("Remove…", `the preview ${name}`, () => this.#ask(preview)),
    );
    return make("li", {}, about, ways);
  }

  /**
   * Shows a QR code of the preview's address.
   *
   * @param {Schemas["Preview"]} preview
   */
  async #code({ name, url }) {
    const turn = ++this.#turn;
    const address = byId("preview-code-address");
    address.href = url;
    address.textContent = url.replace(/^https?:\/\//, "");
    byId("preview-code-picture").replaceChildren();
    byId("preview-code-error").textContent = "";
    byId("preview-code").showModal();
    try {
      const path = /** @type {const} */ (`/api/projects/${this.#slug}/previews/${name}/qr`);
      const code = await this.#session.ask(path);
      if (turn === this.#turn) byId("preview-code-picture").replaceChildren(picture(code));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (turn === this.#turn) byId("preview-code-error").textContent = refusal.message;
    }
  }

  /** @param {Schemas["Preview"]} preview */
  #ask({ name, url }) {
    byId("preview-removal-words").textContent =
      `Nothing is shown at ${url.replace(/^https?:\/\//, "")} from then on.`;
    byId("preview-removal-yes").onclick = async () => {
      const isDone = await this.#question.confirm(async () => {
        await this.#session.open(`${this.#path}/${name}`, { method: "DELETE" });
        await this.show();
      });
      if (isDone) byId("news").textContent = `The preview ${name} is removed.`;
    };
    this.#question.ask();
  }
}

/**
 * The section about previews.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const previews = (desk) => {
  const list = new Previews(desk.session, desk.slug);
  return { look: () => list.show() };
};
