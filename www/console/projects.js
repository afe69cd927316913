// `/build`: the viewer's projects, and a form for a new one.

import { allById, byId, make, playersNow, sum } from "./dom.js";
import { close, enter, isFinal } from "./gate.js";
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
const card = ({ slug, role, standing: { state }, environments: { dev, prod } }) => {
  const playing = sum(dev.players, prod.players);
  const shown = [dev.deployment && "dev", prod.deployment && "production"].filter(Boolean);
  const down =
    {
      disabled: "Disabled · ",
      deleted: "Deleted · ",
      "owner-suspended": "Down: owner suspended · ",
    }[state] ?? "";
  const mine = role === "owner" ? "" : `You are a ${role} · `;
  const where =
    mine + down + (shown.length ? `Deployed to ${shown.join(" and ")}` : "Not deployed yet");
  return make(
    "li",
    { className: "card" },
    make(
      "span",
      { className: "game" },
      make("a", { className: "name", href: `/projects/${slug}`, textContent: slug }),
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

/** Milliseconds between two requests for the list. */
const LOOK = 15_000;

let drawn = "";

/** @param {Session} session */
const draw = async (session) => {
  const { projects, is_admin } = await session.ask("/api/projects");
  byId("administration").hidden = !is_admin;
  // Only what has changed is drawn again: the viewer may be using the rest.
  const listed = JSON.stringify(projects);
  if (listed !== drawn) byId("projects").replaceChildren(...projects.map(card));
  drawn = listed;
  byId("none").hidden = projects.length > 0;
};

/**
 * Asks regularly while the page is visible. Without an answer, the list stays.
 *
 * @param {Session} session
 */
const watch = async (session) => {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK));
    if (document.hidden || byId("inside").hidden) continue;
    try {
      // What has the focus would lose it.
      if (!byId("projects").contains(document.activeElement)) await draw(session);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (isFinal(refusal)) return close(refusal);
    }
  }
};

/** @param {Session} session */
const show = async (session) => {
  await draw(session);
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
      // The project page says what to do next.
      location.assign(`/projects/${slug}?env=dev`);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      refuse(refusal.message);
    }
  };
};

enter(async (session) => {
  await show(session);
  byId("gate").hidden = true;
  byId("inside").hidden = false;
  // A link of the command palette leads to the form, which was not shown until now.
  if (location.hash === "#new-heading") byId("slug").focus();
  watch(session);
});
