// Everything around the canvas: the player's name, the meters, the card.

import { Offline, links, signOut } from "./account.js";

/** Returns an element of index.html.
 * @param {string} id */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const link = (/** @type {string} */ id) => /** @type {HTMLAnchorElement} */ (element(id));
const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (element(id));

const number = new Intl.NumberFormat();

export const field = /** @type {HTMLCanvasElement} */ (element("field"));
export const playButton = button("play");
export const pauseButton = button("pause");

element("sign-out").addEventListener("click", async () => {
  try {
    await signOut();
  } catch (error) {
    if (!(error instanceof Offline)) throw error;
    showNotice(`You are still signed in. ${error.message}`);
  }
});

/** Shows the player, with a link to sign in for a guest and a button to sign
 * out for others.
 * @param {platform.Player} player */
export function showPlayer({ username, isGuest }) {
  const name = link("name");
  // Never as HTML: the player chooses the name.
  name.textContent = username;
  name.title = "Your profile";
  name.href = links.profile ?? "";
  name.hidden = false;
  element("guest").hidden = !isGuest;
  showSignIn(isGuest);
  element("sign-out").hidden = isGuest;
}

/** @param {boolean} shown */
function showSignIn(shown) {
  const signIn = link("sign-in");
  signIn.hidden = !shown;
  if (shown) signIn.href = links.signIn ?? "";
}

/** @param {number} score */
export function showScore(score) {
  element("score").textContent = number.format(score);
}

/** @param {number} best */
export function showBest(best) {
  element("best").textContent = number.format(best);
}

/** Shows the top ten and the player's own place.
 * @param {import("./scores.js").Standing} standing */
export function showStanding({ rank, top }) {
  element("top").replaceChildren(
    ...top.map((entry) => {
      const line = document.createElement("li");
      line.classList.toggle("you", entry.you);
      const name = document.createElement("span");
      name.textContent = entry.username;
      const best = document.createElement("b");
      best.textContent = number.format(entry.best);
      line.append(name, best);
      return line;
    }),
  );
  const place = element("place");
  if (top.length === 0) place.textContent = "No scores yet. Be the first.";
  else if (rank === null) place.textContent = "Score points to get a place of your own.";
  else place.textContent = `Your place: ${number.format(rank)}`;
}

/** Says that there is no list for now, unless a list is already shown. */
export function showNoStanding() {
  if (element("top").children.length === 0) {
    element("place").textContent = "The list comes back with the connection.";
  }
}

/** How long the button is disabled: a player who presses space when the round
 * ends should not skip the result. */
const GRACE_MS = 450;

/** Shows the card over the meadow. Without `button`, the game cannot be played:
 * there is neither a button nor a list.
 * @param {{ headline: string, words: string, button: string | null }} card */
export function showCard({ headline, words, button: label }) {
  element("headline").textContent = headline;
  element("words").textContent = words;
  element("card").hidden = false;
  pauseButton.hidden = true;
  playButton.hidden = !label;
  element("board").hidden = !label;
  if (label) {
    playButton.textContent = label;
    playButton.disabled = true;
    setTimeout(() => {
      playButton.disabled = false;
      if (!element("card").hidden) playButton.focus();
    }, GRACE_MS);
  }
}

/** Hides the card and gives the meadow the keyboard focus. */
export function hideCard() {
  element("card").hidden = true;
  pauseButton.hidden = false;
  field.focus();
}

/** Shows a sentence at the bottom, also to screen readers. An empty one hides
 * it.
 * @param {string} sentence */
export function showNotice(sentence) {
  element("notice").textContent = sentence;
}
