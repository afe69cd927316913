// `/` and `/games/<slug>`: who the visitor is, their favourites, and what they played lately. The
// pages work without it. A visitor who is nobody yet stays that until they choose a favourite.

import { make, userText } from "./dom.js";
import { Refusal, Session } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */

/** How many games are shown above the others. */
const SHOWN = 12;

/**
 * Returns an element that only one of the pages has.
 *
 * @param {string} id
 */
const find = (id) => document.getElementById(id);

const session = new Session(find("front")?.dataset.auth ?? "");

/** Shows who the visitor is. */
const sayWho = async () => {
  const { username, isGuest } = await session.player();
  const name = /** @type {HTMLAnchorElement} */ (find("account-name"));
  name.search = String(new URLSearchParams({ redirect: location.href }));
  name.replaceChildren(userText(username));
  const words = find("account-words");
  if (words) words.textContent = isGuest ? "Guest" : "Signed in as";
  find("account")?.removeAttribute("hidden");
  const signIn = find("sign-in");
  if (signIn) signIn.hidden = !isGuest;
};

/** @param {Schemas["OwnGame"]} game */
const item = ({ title, cover, url, favourite }) => {
  const picture = cover
    ? make("img", {
        className: "cover",
        src: cover,
        alt: "",
        loading: "lazy",
        referrerPolicy: "no-referrer",
      })
    : make("span", {
        className: "cover",
        textContent: [...title][0]?.toUpperCase() ?? "",
        ariaHidden: "true",
      });
  const words = favourite ? "Favourite" : "Played lately";
  return make(
    "li",
    {},
    make(
      "a",
      { className: "cover-link", href: url },
      picture,
      userText(title, "name"),
      make("span", { className: "host", textContent: words }),
    ),
  );
};

/** @param {Schemas["OwnGames"]} own */
const draw = ({ games }) => {
  const list = find("own-games");
  if (list) {
    list.replaceChildren(...games.slice(0, SHOWN).map(item));
    list.closest("section")?.toggleAttribute("hidden", !games.length);
  }
  const button = find("favourite");
  if (!button) return;
  const game = games.find(({ slug }) => slug === button.dataset.slug);
  const isFavourite = Boolean(game?.favourite);
  button.ariaPressed = String(isFavourite);
  button.textContent = isFavourite ? "★ Favourite" : "☆ Favourite";
};

const toggle = async () => {
  const button = /** @type {HTMLButtonElement} */ (find("favourite"));
  const error = /** @type {HTMLElement} */ (find("favourite-error"));
  const method = button.ariaPressed === "true" ? "DELETE" : "PUT";
  error.textContent = "";
  button.disabled = true;
  try {
    const response = await session.open(`/api/me/favourites/${button.dataset.slug}`, { method });
    draw(await response.json());
    await sayWho();
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    error.textContent = refusal.message;
  } finally {
    button.disabled = false;
  }
};

const start = async () => {
  const button = find("favourite");
  if (button) {
    button.onclick = toggle;
    draw({ games: [] });
    button.hidden = false;
  }
  try {
    if (!(await session.knows())) return;
    await sayWho();
    draw(await session.ask("/api/me/games"));
  } catch (refusal) {
    // The page shows games to everybody, whoever they are.
    if (!(refusal instanceof Refusal)) throw refusal;
  }
};

start();
