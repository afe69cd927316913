// `/build`: the viewer's projects, and a form for a new one.

import { allById, byId, make, playersNow, sum } from "./dom.js";
import { enter } from "./gate.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Session } from "./session.js" */

/**
 * @param {string} words
 * @param {string} href
 * @param {string} slug
 */
const link = (words, href, slug) =>
  make(
    "a",
    { className: "button second", href },
    words,
    make("span", { className: "aside", textContent: ` ${slug}` }),
  );

/** @param {Schemas["Project"]} project */
const card = ({ slug, standing: { state }, environments: { dev, prod } }) => {
  const playing = sum(dev.players, prod.players);
  const shown = [dev.deployment && "dev", prod.deployment && "production"].filter(Boolean);
  const down =
    {
      disabled: "Disabled · ",
      deleted: "Deleted · ",
      "owner-suspended": "Down: owner suspended · ",
    }[state] ?? "";
  const where = down + (shown.length ? `Deployed to ${shown.join(" and ")}` : "Not deployed yet");
  return make(
    "li",
    { className: "card" },
    make(
      "span",
      { className: "game" },
      make("span", { className: "name", textContent: slug }),
      make("span", {
        className: "host",
        textContent: `${where} · ${playersNow(playing)}`,
      }),
    ),
    make(
      "span",
      { className: "ways" },
      link("Project", `/projects/${slug}`, slug),
      link("Build", `/build/${slug}`, slug),
    ),
  );
};

/** @param {Session} session */
const show = async (session) => {
  const { projects, is_admin } = await session.ask("/api/projects");
  byId("administration").hidden = !is_admin;
  byId("projects").replaceChildren(...projects.map(card));
  byId("none").hidden = projects.length > 0;
  const [form, field, error] = allById("new", "slug", "slug-error");
  /** @param {string} sentence */
  const refuse = (sentence) => {
    error.textContent = sentence;
    byId("slug-field").classList.toggle("wrong", Boolean(sentence));
    field.ariaInvalid = sentence ? "true" : null;
    if (sentence) field.focus();
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    refuse("");
    try {
      const { slug } = await session.ask("/api/projects", { slug: field.value.trim() });
      location.assign(`/build/${slug}`);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      refuse(refusal.message);
    }
  };
};

enter(show);
