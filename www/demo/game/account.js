// The player, and what to do when a call for the player fails. You can use this
// file in your own game.

/** The runtime. It is missing only if its script could not be loaded; the game
 * is then played without an account.
 * @type {Platform | undefined} */
const platform = globalThis.platform;

/** The pause before each further attempt, after a 429 without a problem. */
const PAUSES_MS = [1_000, 2_000, 4_000];

/** Thrown by `call` when the game can go on, but without its backend. */
export class Offline extends Error {}

/** Thrown by `call` when this player may not play. `message` says why. */
export class Suspended extends Error {}

/**
 * Calls the game's backend as the player. Returns the JSON answer, or
 * `undefined` if the answer is empty (204). Rejects as `asPlayer` does.
 *
 * @param {string} path
 * @param {platform.FetchInit} [init]
 */
export const call = (path, init) =>
  asPlayer(async (platform) => read(await platform.fetch(path, init)));

/**
 * Runs an action of the runtime for the player, and returns its result.
 *
 * It rejects with `Offline` or `Suspended`. While the browser navigates to the
 * sign-in page, the promise never settles, so that no error is shown briefly.
 *
 * @template T
 * @param {(platform: Platform) => Promise<T>} action
 * @returns {Promise<T>}
 */
async function asPlayer(action) {
  if (!platform) throw new Offline("The platform is not available.");
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await action(platform);
    } catch (error) {
      // Any other error is a bug in the game, which must not be hidden.
      if (!(error instanceof platform.PlatformError)) throw error;
      const pause = PAUSES_MS[attempt];
      switch (remedy(error)) {
        case "sign in":
          // A full page load: the sign-in page is on another address. It
          // replaces this page in the history, because going back to this page
          // would only lead to the sign-in page again.
          location.replace(platform.loginUrl());
          return new Promise(() => {});
        case "stop":
          throw new Suspended(error.message);
        case "wait":
          if (pause === undefined) throw new Offline(error.message);
          // The pause is random, so that not all players retry at once.
          await new Promise((resume) => setTimeout(resume, pause * (0.75 + Math.random() / 2)));
          break;
        default:
          throw new Offline(error.message);
      }
    }
  }
}

/** Returns the JSON of a response. If the response is cut off, because the
 * connection was lost or the player leaves the page, the game counts as
 * offline.
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

/** Returns what to do after a `PlatformError`.
 * @param {platform.PlatformError} error */
function remedy(error) {
  // The session of an account ended, or this network has too many guests. In
  // both cases the player must sign in.
  if (error.is("session-expired") || error.is("guest-limit-reached")) return "sign in";
  // Neither a retry nor another sign-in ends a suspension.
  if (error.is("account-suspended")) return "stop";
  // Too many new guests at one address: a 429 without a problem.
  if (error.status === 429 && error.type === "") return "wait";
  // Status 0 is a network error, any other status one of the backend.
  return "go on";
}

/** Returns the player. */
export const whoPlays = () => asPlayer((platform) => platform.player());

/** The addresses are read when they are shown: they lead back to this page. */
export const links = {
  get signIn() {
    return platform?.loginUrl();
  },
  get profile() {
    return platform?.profileUrl();
  },
};

/** Signs the player out of all games of the platform, and restarts this one.
 * Rejects with `Offline` if the player is still signed in. */
export async function signOut() {
  if (!platform) throw new Offline("The platform is not available.");
  try {
    await platform.signOut();
  } catch (error) {
    if (!(error instanceof platform.PlatformError)) throw error;
    throw new Offline(error.message);
  }
}
