// The gate of a developers' page: who the viewer is, and what a viewer without access reads in
// place of the page.

import { byId, plain, userText } from "./dom.js";
import { offerPalette } from "./palette.js";
import { Session } from "./session.js";

/** @import { Player } from "../types/api.d.ts" */
/** @import { Refusal } from "./session.js" */

/**
 * Shows a message and links in place of the page.
 *
 * @param {string} words
 * @param {{ signIn?: boolean, fresh?: boolean, again?: boolean, projects?: boolean }} [ways]
 */
const say = (words, { signIn = false, fresh = false, again = false, projects = false } = {}) => {
  /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[open]"))?.close();
  byId("inside").hidden = true;
  byId("gate").hidden = false;
  byId("gate").classList.remove("waiting");
  byId("gate-words").textContent = plain(words);
  const link = byId("gate-sign-in");
  link.hidden = !signIn && !fresh;
  link.textContent = fresh ? "Sign in again" : "Sign in";
  // The page's address has changed if something was chosen on it. What follows `#` is the page's own.
  const { origin, pathname, search } = location;
  const parameters = new URLSearchParams({ redirect: origin + pathname + search });
  if (fresh) parameters.set("again", "1");
  link.search = String(parameters);
  byId("gate-again").hidden = !again;
  byId("gate-projects").hidden = !projects;
  // A viewer who cannot see this page of a project cannot see its other pages either.
  /** @type {NodeListOf<HTMLElement>} */
  const ways = document.querySelectorAll(".within");
  for (const way of ways) way.hidden = projects;
};

/**
 * Shows the viewer's name, with a link to the profile that leads back here.
 *
 * @param {Player} player
 */
const sayWho = ({ username, isGuest }) => {
  const link = byId("account-name");
  const lead = () => (link.search = String(new URLSearchParams({ redirect: location.href })));
  lead();
  // The page's address changes when something is chosen on it.
  link.onfocus = link.onpointerenter = lead;
  link.replaceChildren(userText(username));
  byId("account-words").textContent = isGuest ? "Guest" : "Signed in as";
  byId("account").hidden = false;
};

/**
 * Shows a refusal of the platform in place of the page.
 *
 * @param {any} refusal a `Refusal`, or an error of this page
 */
export const close = (refusal) => {
  const { slug, status, message } = refusal;
  if (status === 401) byId("account").hidden = true;
  if (slug === "session-expired" || slug === "not-signed-in" || slug === "guest-limit-reached") {
    say(
      slug === "session-expired"
        ? "Your session is over. Sign in to go on."
        : "Sign in to see your projects.",
      {
        signIn: true,
      },
    );
  } else if (slug === "account-suspended") {
    // An administrator wrote this sentence; it may not say that the account is suspended.
    const why = /suspended/i.test(message) ? message : `Your account is suspended: ${message}`;
    say(`${why} Sign in as somebody else to go on.`, { signIn: true });
  } else if (slug === "step-up-required") {
    say(message, { fresh: true, projects: true });
  } else if (slug === "not-found" || slug === "not-allowed") {
    // Permission may be given at any time, so trying again can help.
    say(message, { again: slug === "not-allowed", projects: true });
  } else if (refusal instanceof Error && status === undefined) {
    say("Something went wrong on this page.", { again: true });
    throw refusal;
  } else {
    say(message, { again: true });
  }
};

/**
 * Returns whether a refusal means that no other request of this page will succeed either.
 *
 * @param {Refusal} refusal
 */
export const isFinal = ({ slug, status }) =>
  status === 401 || status === 403 || slug === "not-found" || slug === "guest-limit-reached";

/** What a guest reads on most pages. */
const TO_GUESTS = "You are a guest here. Sign in to make games: projects belong to an account.";

/**
 * Opens the page for a viewer who is signed in: `show` fills it. Guests read `toGuests`.
 *
 * @param {(session: Session, player: Player) => Promise<void> | void} show
 * @param {string} [toGuests]
 */
export const enter = async (show, toGuests = TO_GUESTS) => {
  byId("gate-again").onclick = () => location.reload();
  const inside = byId("inside");
  const session = new Session(inside.dataset.auth ?? "");
  session.wantsFresh = close;
  offerPalette(session);
  try {
    const player = await session.player();
    sayWho(player);
    if (player.isGuest) {
      say(toGuests, { signIn: true });
      return;
    }
    await show(session, player);
    byId("gate").hidden = true;
    inside.hidden = false;
  } catch (refusal) {
    close(refusal);
  }
};
