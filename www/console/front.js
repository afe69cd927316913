// `/` and `/games/<slug>`: who the visitor is, their favourites, and what they played lately. The
// pages work without it. A visitor who is nobody yet stays that until they choose a favourite.

import { make, userText } from "./dom.js";
import { Refusal, Session } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */

/** How many games are shown above the others. */
const SHOWN = 12;
/** Where this browser remembers that it showed some, so that the next page keeps their place free. */
const REMEMBERED = "own-games";

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

/**
 * Shows these in the list of own games, which is hidden without any.
 *
 * @param {HTMLElement} list
 * @param {HTMLElement[]} items
 */
const fill = (list, items) => {
  list.replaceChildren(...items);
  list.closest("section")?.toggleAttribute("hidden", !items.length);
};

/** Keeps the place of own games free, if there were some last time. */
const keepPlace = () => {
  const list = find("own-games");
  if (!list || !remembered()) return;
  const cover = make("span", { className: "cover" });
  const name = make("span", { className: "name", textContent: "\u00a0" });
  const host = make("span", { className: "host", textContent: "\u00a0" });
  const place = make("li", {}, make("span", { className: "cover-link" }, cover, name, host));
  place.ariaHidden = "true";
  fill(list, [place]);
};

/** Storage may be switched off in the browser. */
const remembered = () => {
  try {
    return localStorage.getItem(REMEMBERED) !== null;
  } catch {
    return false;
  }
};

/** @param {boolean} isShown */
const remember = (isShown) => {
  try {
    if (isShown) localStorage.setItem(REMEMBERED, "");
    else localStorage.removeItem(REMEMBERED);
  } catch {
    // Then the place is not kept free.
  }
};

/** @param {Schemas["OwnGames"]} own */
const draw = ({ games }) => {
  const list = find("own-games");
  if (list) {
    fill(list, games.slice(0, SHOWN).map(item));
    remember(games.length > 0);
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
  keepPlace();
  const button = find("favourite");
  if (button) {
    button.onclick = toggle;
    draw({ games: [] });
    button.hidden = false;
  }
  try {
    if (!(await session.knows())) {
      draw({ games: [] });
      return;
    }
    await sayWho();
    draw(await session.ask("/api/me/games"));
  } catch (refusal) {
    // The page shows games to everybody, whoever they are.
    if (!(refusal instanceof Refusal)) throw refusal;
  }
};

start();
