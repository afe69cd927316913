// A token of a test player, to try a backend out. It is shown until it expires or the page is
// left, and is stored nowhere.

import { byId, moment } from "./dom.js";
import { Refusal } from "./session.js";
import { copy } from "./variables.js";

/** @import { Desk, Part } from "./project.js" */

const forget = () => {
  byId("token-shown").hidden = true;
  byId("token-text").textContent = "";
};

/**
 * The section about test players.
 *
 * @param {Desk} desk
 * @returns {Part}
 */
export const testTokens = ({ session, slug }) => {
  /** @type {number | undefined} */
  let ends;
  const button = /** @type {HTMLButtonElement} */ (byId("token").querySelector("button"));
  byId("token").onsubmit = async (event) => {
    event.preventDefault();
    // Only the last token's expiry counts.
    button.disabled = true;
    clearTimeout(ends);
    forget();
    byId("token-error").textContent = "";
    const [kind, number] = byId("token-player").value.split("-");
    try {
      const wanted = { number: Number(number), guest: kind === "guest" };
      const { access_token: token, expires_in: seconds } = await session.ask(
        `/api/projects/${slug}/test-tokens`,
        wanted,
      );
      byId("token-text").textContent = token;
      byId("token-who").textContent = `test-${kind}-${number}`;
      byId("token-until").replaceChildren(
        moment(new Date(Date.now() + seconds * 1000).toISOString()),
      );
      byId("token-shown").hidden = false;
      byId("news").textContent = `A token of test-${kind}-${number} is shown.`;
      ends = setTimeout(forget, seconds * 1000);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("token-error").textContent = refusal.message;
    } finally {
      button.disabled = false;
      // In some browsers a disabled button loses the focus.
      if (document.activeElement === document.body) button.focus({ preventScroll: true });
    }
  };
  byId("token-copy").onclick = () =>
    copy(byId("token-copy"), byId("token-text").textContent, byId("token-text"), "the token");
  byId("token-forget").onclick = () => {
    forget();
    byId("token-player").focus();
  };
  return {};
};
