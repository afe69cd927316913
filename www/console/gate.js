// Before a page for developers: who looks at it, and what to do where they may
// not.

import { byId, plain, said } from "./dom.js";
import { Session } from "./session.js";

/** @import { Player } from "../types/api.d.ts" */
/** @import { Refusal } from "./session.js" */

/**
 * Says why there is nothing else to be seen, and what leads on.
 *
 * @param {string} words
 * @param {{ signIn?: boolean, fresh?: boolean, again?: boolean, projects?: boolean }} [ways]
 */
const say = (words, { signIn = false, fresh = false, again = false, projects = false } = {}) => {
  /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[open]"))?.close();
  byId("inside").hidden = true;
  byId("gate").hidden = false;
  byId("gate-words").textContent = plain(words);
  const link = byId("gate-sign-in");
  link.hidden = !signIn && !fresh;
  link.textContent = fresh ? "Sign in again" : "Sign in";
  if (fresh) {
    // The page's own address changes with what is chosen on it.
    const parameters = { redirect: location.href, again: "1" };
    link.search = String(new URLSearchParams(parameters));
  }
  byId("gate-again").hidden = !again;
  byId("gate-projects").hidden = !projects;
  // What is not there for them has no other pages either.
  const ways = /** @type {HTMLElement | null} */ (document.querySelector(".title > .soft"));
  if (ways) ways.hidden = projects;
};

/**
 * Says whose page it is, with the way to their profile and back here.
 *
 * @param {Player} player
 */
const sayWho = ({ username, isGuest }) => {
  const link = byId("account-name");
  const lead = () => (link.search = String(new URLSearchParams({ redirect: location.href })));
  lead();
  // The page's own address changes with what is chosen on it.
  link.onfocus = link.onpointerenter = lead;
  link.replaceChildren(said(username));
  byId("account-words").textContent = isGuest ? "Guest" : "Signed in as";
  byId("account").hidden = false;
};

/**
 * Says what a refusal of the platform means for the whole page.
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
    // The reason is somebody's own sentence, which need not say what it is the reason of.
    const why = /suspended/i.test(message) ? message : `Your account is suspended: ${message}`;
    say(`${why} Sign in as somebody else to go on.`, { signIn: true });
  } else if (slug === "step-up-required") {
    say(message, { fresh: true, projects: true });
  } else if (slug === "not-found" || slug === "not-allowed") {
    // Who may can be changed by others at any time.
    say(message, { again: slug === "not-allowed", projects: true });
  } else if (refusal instanceof Error && status === undefined) {
    say("Something went wrong on this page.", { again: true });
    throw refusal;
  } else {
    say(message, { again: true });
  }
};

/**
 * Whether a refusal means that the page has nothing more to show.
 *
 * @param {Refusal} refusal
 */
export const isFinal = ({ slug, status }) =>
  status === 401 || status === 403 || slug === "not-found" || slug === "guest-limit-reached";

/** What a guest is told where nothing else is said. */
const TO_GUESTS = "You are a guest here. Sign in to make games: projects belong to an account.";

/**
 * Opens the page to who is signed in: `show` fills it, and is handed the
 * session and the player. Guests read `toGuests`.
 *
 * @param {(session: Session, player: Player) => Promise<void> | void} show
 * @param {string} [toGuests]
 */
export const enter = async (show, toGuests = TO_GUESTS) => {
  byId("gate-again").onclick = () => location.reload();
  const inside = byId("inside");
  const session = new Session(inside.dataset.auth ?? "");
  session.wantsFresh = close;
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
