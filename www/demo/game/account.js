// The player, and what to do when a call for the player fails. This is the file
// to copy into a game of one's own.

/** The runtime's global. It is missing only where its script could not be
 * loaded; the game is then played without an account.
 * @type {Platform | undefined} */
const platform = globalThis.platform;

/** Attempts after a 429 that carries no problem, and the pause before each. */
const PAUSES_MS = [1_000, 2_000, 4_000];

/** Thrown by `call` when the game can go on, but without its backend. */
export class Offline extends Error {}

/** Thrown by `call` when this player may not play. `message` says why. */
export class Suspended extends Error {}

/**
 * Calls the game's backend as the player and returns the JSON answer, or
 * `undefined` where there is nothing to answer (204).
 *
 * It rejects with `Offline` or `Suspended`. While the browser is on its way to
 * the sign-in page it does not settle at all, so that nothing flashes up.
 *
 * @param {string} path
 * @param {platform.FetchInit} [init]
 */
export async function call(path, init) {
  if (!platform) throw new Offline("The platform is not available.");
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await platform.fetch(path, init);
      return await read(response);
    } catch (error) {
      // Anything else is a mistake of the game's own: it should be seen.
      if (!(error instanceof platform.PlatformError)) throw error;
      const pause = PAUSES_MS[attempt];
      switch (remedy(error)) {
        case "sign in":
          // A full page load: the sign-in page is on another address. This
          // page gives up its place in the history, as going back to it would
          // only lead to the sign-in page again.
          location.replace(platform.loginUrl());
          return new Promise(() => {});
        case "stop":
          throw new Suspended(error.message);
        case "wait":
          if (pause === undefined) throw new Offline(error.message);
          // A little chance, so that a crowd does not come back all at once.
          await new Promise((resume) => setTimeout(resume, pause * (0.75 + Math.random() / 2)));
          break;
        default:
          throw new Offline(error.message);
      }
    }
  }
}

/** The JSON of an answer. One that breaks off midway, because the connection did
 * or because the player is leaving the page, is as good as none.
 * @param {Response} response */
async function read(response) {
  if (response.status === 204) return undefined;
  let text;
  try {
    text = await response.text();
  } catch {
    throw new Offline("The answer broke off.");
  }
  return JSON.parse(text);
}

/** What helps against a `PlatformError`.
 * @param {platform.PlatformError} error */
function remedy(error) {
  // The session of a real account ended, or this network has too many guests:
  // either way, signing in is the way back.
  if (error.is("session-expired") || error.is("guest-limit-reached")) return "sign in";
  // Neither a retry nor another sign-in lifts a suspension.
  if (error.is("account-suspended")) return "stop";
  // The edge limit on new guests answers 429 without a problem body.
  if (error.status === 429 && error.type === "") return "wait";
  // Status 0: no answer. Anything else: the backend's trouble, not the player's.
  return "go on";
}

/** @typedef {{ sub: string, username: string, is_anon: boolean }} Player */

/** Who is playing.
 * @returns {Promise<Player>} */
export const whoPlays = () => call("/api/me");

/** Links are asked for when they are shown: they lead back to this page. */
export const links = {
  get signIn() {
    return platform?.loginUrl();
  },
  get profile() {
    return platform?.profileUrl();
  },
};

/** Signs out of the platform, in every game, and starts this one again. It
 * rejects with `Offline` where the player is signed in still. */
export async function signOut() {
  if (!platform) throw new Offline("The platform is not available.");
  try {
    await platform.signOut();
  } catch (error) {
    if (!(error instanceof platform.PlatformError)) throw error;
    throw new Offline(error.message);
  }
}
