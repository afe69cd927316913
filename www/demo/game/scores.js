// Scores, which the game's backend stores under the player's `sub`. A score
// that cannot be sent is kept in this browser until it can.

import { call } from "./account.js";

const STORAGE_KEY = "firefly:unsent";

/** A player's standing: the best score, the rank among all, and the top ten.
 * @typedef {{ best: number, rank: number | null,
 *   top: { username: string, best: number, you: boolean }[] }} Standing */

/** @returns {Promise<Standing>} */
export const standing = () => call("/api/score");

/**
 * Sends the best score that could not be sent before, if there is one.
 * @param {string} sub who is playing now: another player's score stays until
 *   that player is back
 * @returns {Promise<Standing | null>} the standing after it, or null if nothing was sent
 */
export async function sendUnsent(sub) {
  const unsent = recall();
  const score = Math.max(unsent[sub] ?? 0, unsent[NOBODY] ?? 0);
  if (score === 0) return null;
  const after = await call("/api/score", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ score }),
  });
  forget(sub, score);
  return after;
}

/** The key of a score that was made before the player was known. It belongs to
 * the next player who is known in this browser. */
const NOBODY = "";

/** Keeps a score in this browser until `sendUnsent`.
 * @param {number} score */
export function remember(score, sub = NOBODY) {
  const unsent = recall();
  if (score > (unsent[sub] ?? 0)) store({ ...unsent, [sub]: score });
}

/** @type {(sub: string, score: number) => void} */
function forget(sub, score) {
  // A better score may have been added while this one was being sent.
  const left = Object.entries(recall()).filter(
    ([owner, kept]) => (owner !== sub && owner !== NOBODY) || kept > score,
  );
  store(Object.fromEntries(left));
}

// Storage throws if the browser forbids it, as in some private windows. The
// score is then lost with the page, but the game continues.
/** @type {Record<string, number>} */
let fallback = {};

/** @returns {Record<string, number>} by player, the score that is still to be sent */
function recall() {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "null") ?? fallback;
  } catch {
    return fallback;
  }
}

/** @param {Record<string, number>} unsent */
function store(unsent) {
  fallback = unsent;
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(unsent));
  } catch {
    // See above.
  }
}
