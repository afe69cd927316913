// Whether the public page lists the game, and what it shows of it in place of the page's metadata.

import { byId } from "./dom.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

/** The texts that are set as they are typed. */
const TEXTS = /** @type {const} */ (["title", "description", "author", "cover"]);

/** @param {string} text */
const tagsIn = (text) =>
  text
    .split(",")
    .map((tag) => tag.trim())
    .filter(Boolean);

/**
 * Returns the sentence about how the game is listed.
 *
 * @param {Schemas["Listing"]} listing
 */
const stateWords = ({ listed, shown }) => {
  if (!listed) return "The game is not listed.";
  return shown
    ? "The public page lists the game."
    : "The public page lists the game once it is deployed to production.";
};

/** @param {Schemas["Listing"]} listing */
const draw = (listing) => {
  const { listed, own, shown } = listing;
  byId("listing-state").textContent = stateWords(listing);
  byId("listing-listed").checked = listed;
  byId("listing-page").hidden = !(listed && shown);
  for (const name of TEXTS) {
    const field = byId(`listing-${name}`);
    field.value = own[name] ?? "";
    // What the page says is shown where nothing is set.
    if (name !== "cover") field.placeholder = (!own[name] && shown?.[name]) || "";
  }
  byId("listing-tags").value = own.tags?.join(", ") ?? "";
  if (!own.tags && shown?.tags.length) byId("listing-tags").placeholder = shown.tags.join(", ");
};

/** Returns what the form says. An empty field leaves it to the page. */
const wanted = () => {
  const tags = tagsIn(byId("listing-tags").value);
  /** @param {typeof TEXTS[number]} name */
  const text = (name) => byId(`listing-${name}`).value.trim() || null;
  return {
    listed: byId("listing-listed").checked,
    own: {
      title: text("title"),
      description: text("description")?.replace(/\s+/g, " ") ?? null,
      author: text("author"),
      cover: text("cover"),
      tags: tags.length ? tags : null,
    },
  };
};

/**
 * The section of the listing. It belongs to the project, whichever environment is shown.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const listing = (desk) => {
  const path = /** @type {const} */ (`/api/projects/${desk.slug}/listing`);
  let isDrawn = false;
  byId("listing").onsubmit = async (event) => {
    event.preventDefault();
    byId("listing-error").textContent = byId("listing-saved").textContent = "";
    try {
      const headers = { "Content-Type": "application/json" };
      const init = { method: "PUT", headers, body: JSON.stringify(wanted()) };
      const response = await desk.session.open(path, init);
      draw(await response.json());
      byId("news").textContent = byId("listing-saved").textContent = "The listing is saved.";
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("listing-error").textContent = refusal.message;
    }
  };
  return {
    // A viewer reads how the game is listed, and may not change it.
    draw: () => {
      byId("listing").hidden = desk.project.role === "viewer";
    },
    open: async () => {
      // Another environment does not change it, and what is being typed stays.
      if (isDrawn) return;
      draw(await desk.session.ask(path));
      isDrawn = true;
    },
  };
};
