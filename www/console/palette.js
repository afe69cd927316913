// The command palette: a list of projects, pages and actions that is searched by typing. A button
// in the header opens it, and so does Ctrl-K or Cmd-K. The list consists of links and buttons, so
// the keyboard and screen readers use it like any other.

import { allById, byId, count, make, plain } from "./dom.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Session } from "./session.js" */

/**
 * An entry of the list: a link, or an action.
 *
 * @typedef {object} Choice
 * @property {string} name
 * @property {string} kind what it is, which is shown beside it
 * @property {string} [more] words that it is found by, too
 * @property {string} [href]
 * @property {() => unknown} [act]
 */

/** How many choices are listed at most. */
const LISTED = 12;
/** How many milliseconds a message is shown. */
const SHOWN = 5000;

/** The tabs of a project: the end of the address, and the name. */
const TABS = [
  ["", "Overview"],
  ["/errors", "Errors"],
  ["/logs", "Logs"],
  ["/players", "Players"],
  ["/deployments", "Deployments"],
  ["/settings", "Settings"],
];

const ADMINISTRATION = [
  ["", "Players"],
  ["/guests", "Guests"],
  ["/projects", "All projects"],
  ["/keys", "Signing keys"],
  ["/nodes", "Nodes"],
  ["/events", "Audit log"],
];

/** @type {number | undefined} */
let fading;

/**
 * Shows a message for a while.
 *
 * @param {string} words
 */
const tell = (words) => {
  clearTimeout(fading);
  byId("toast").textContent = words;
  fading = setTimeout(() => (byId("toast").textContent = ""), SHOWN);
};

/** @param {string} text */
const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    tell(`Copied: ${text}`);
  } catch {
    tell(`The browser does not let this page copy. It is ${text}`);
  }
};

/**
 * Returns the choices about a project.
 *
 * @param {Schemas["Project"]} project
 * @returns {Choice[]}
 */
const ofProject = ({ slug, environments: { dev, prod } }) => [
  ...TABS.map(([end, name]) => ({
    name: end ? `${slug}: ${name}` : slug,
    kind: end ? "Tab" : "Project",
    more: end ? "project" : "project overview",
    href: `/projects/${slug}${end}`,
  })),
  { name: `${slug}: Build page`, kind: "Page", more: "preview log", href: `/build/${slug}` },
  {
    name: `${slug}: Copy the production address`,
    kind: "Action",
    more: "url link",
    act: () => copy(prod.url),
  },
  {
    name: `${slug}: Copy the dev address`,
    kind: "Action",
    more: "url link",
    act: () => copy(dev.url),
  },
  {
    name: `${slug}: Copy the deploy command`,
    kind: "Action",
    more: "cli",
    act: () => copy(`platform deploy --project ${slug}`),
  },
];

/**
 * Returns the choices that every viewer has.
 *
 * @param {string} profile
 * @returns {Choice[]}
 */
const pages = (profile) => [
  { name: "Your projects", kind: "Page", more: "console", href: "/build" },
  { name: "New project", kind: "Action", more: "create game", href: "/build#new-heading" },
  { name: "The command line", kind: "Page", more: "cli install download docs", href: "/cli" },
  { name: "Documents", kind: "Page", more: "docs help guide api", href: "/docs" },
  { name: "Your profile", kind: "Page", more: "account sign out name devices", href: profile },
  { name: "All games", kind: "Page", more: "home play", href: "/" },
];

/** @returns {Choice[]} */
const administration = () =>
  ADMINISTRATION.map(([end, name]) => ({
    name: `Administration: ${name}`,
    kind: "Page",
    href: `/admin${end}`,
  }));

/**
 * Returns how well a choice fits the words: smaller is better; nothing if it does not fit.
 *
 * @param {Choice} choice
 * @param {string[]} words
 */
const fit = ({ name, kind, more = "" }, words) => {
  const [called, all] = [name.toLowerCase(), `${name} ${kind} ${more}`.toLowerCase()];
  if (!words.every((word) => all.includes(word))) return undefined;
  const starts = words.filter((word) => called.startsWith(word)).length;
  const named = words.filter((word) => called.includes(word)).length;
  return called.length / 1000 - starts - named;
};

/** The palette of a page. */
class Palette {
  #session;
  /** @type {Choice[]} */
  #choices = [];
  #profile = byId("account-name").href.split("?")[0];
  /** The project that the page is about, if it is about one. */
  #here = byId("inside").dataset.slug;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
    const [dialog, form, text, list] = allById(
      "palette",
      "palette-form",
      "palette-text",
      "palette-list",
    );
    this.#choices = pages(this.#profile);
    byId("palette-open").onclick = () => this.#open();
    byId("palette-close").onclick = () => dialog.close();
    // What surrounds the dialog belongs to the dialog's element.
    dialog.onclick = ({ target }) => {
      if (target === dialog) dialog.close();
    };
    addEventListener("keydown", (event) => {
      const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
      if (key.toLowerCase() !== "k" || ctrlKey === metaKey || altKey || shiftKey) return;
      event.preventDefault();
      if (dialog.open) dialog.close();
      else this.#open();
    });
    text.oninput = () => this.#draw();
    form.onsubmit = (event) => {
      event.preventDefault();
      this.#items()[0]?.click();
    };
    dialog.onkeydown = (event) => this.#move(event);
    list.onclick = () => dialog.close();
    if (/Mac|iP(hone|ad)/.test(navigator.platform)) byId("palette-keys").textContent = "⌘K";
  }

  #open() {
    // A question that is open is answered first.
    if (document.querySelector("dialog[open]")) return;
    byId("palette-text").value = "";
    this.#draw();
    byId("palette").showModal();
    this.#ask();
  }

  /** Asks for the viewer's projects. Without an answer, the other choices stay. */
  async #ask() {
    try {
      const { projects, is_admin: isAdmin } = await this.#session.ask("/api/projects");
      const isHere = (/** @type {Schemas["Project"]} */ { slug }) => slug === this.#here;
      // Those of this page come first.
      const sorted = [...projects.filter(isHere), ...projects.filter((one) => !isHere(one))];
      this.#choices = [
        ...sorted.flatMap(ofProject),
        ...pages(this.#profile),
        ...(isAdmin ? administration() : []),
      ];
      this.#draw();
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
    }
  }

  /** @returns {HTMLElement[]} */
  #items() {
    return [...byId("palette-list").querySelectorAll("a, button")].map(
      (item) => /** @type {HTMLElement} */ (item),
    );
  }

  /**
   * Returns the choices for what was typed. Without words, these are what one may want here: the
   * tabs of this project, other projects, and pages.
   *
   * @param {string[]} words
   */
  #found(words) {
    if (!words.length) {
      const own = `${this.#here}: `;
      return this.#choices.filter(
        ({ name, kind }) => name.startsWith(own) || kind === "Project" || !name.includes(": "),
      );
    }
    return this.#choices
      .map((choice) => ({ choice, rank: fit(choice, words) }))
      .filter(({ rank }) => rank !== undefined)
      .sort((one, other) => Number(one.rank) - Number(other.rank))
      .map(({ choice }) => choice);
  }

  #draw() {
    const words = byId("palette-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.#found(words);
    const listed = found.slice(0, LISTED);
    byId("palette-list").replaceChildren(...listed.map((choice) => this.#item(choice)));
    byId("palette-state").textContent = found.length
      ? `${count(found.length, "choice", "choices")}. Enter takes ${plain(found[0].name)}.`
      : "Nothing is called so. Try a project’s name, or “logs”.";
  }

  /** @param {Choice} choice */
  #item({ name, kind, href, act }) {
    const inside = [
      make("span", { className: "palette-name", textContent: plain(name) }),
      " ",
      make("span", { className: "note soft", textContent: kind }),
    ];
    const item = href
      ? make("a", { href }, ...inside)
      : make("button", { type: "button" }, ...inside);
    if (act) item.onclick = act;
    return make("li", {}, item);
  }

  /**
   * Moves along the list with the arrow keys. What is typed there belongs to the field.
   *
   * @param {KeyboardEvent} event
   */
  #move(event) {
    const { key, ctrlKey, metaKey, altKey, isComposing } = event;
    if (ctrlKey || metaKey || altKey || isComposing) return;
    const field = byId("palette-text");
    const stops = [field, ...this.#items()];
    const at = stops.indexOf(/** @type {any} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step) {
      event.preventDefault();
      stops[(Math.max(at, 0) + step + stops.length) % stops.length].focus();
    } else if (at > 0 && key.length === 1 && key !== " ") {
      field.focus();
    }
  }
}

/**
 * Makes the palette of this page work.
 *
 * @param {Session} session
 */
export const offerPalette = (session) => new Palette(session);
