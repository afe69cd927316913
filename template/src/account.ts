// The player, and what to do when a call for the player fails. You can use this
// file unchanged in your own game.

/** Thrown by `call` when the game can go on, but without its backend. */
export class Offline extends Error {}

/** Thrown by `call` when this player may not play. `message` says why. */
export class Suspended extends Error {}

/** The pause before each further attempt, after a 429 without a problem. */
const PAUSES_MS = [1_000, 2_000, 4_000];

/** The runtime. It is missing only if its script could not be loaded. */
const runtime: Platform | undefined = globalThis.platform;

/**
 * Calls the game's backend as the player, and returns its JSON answer.
 *
 * Rejects with `Offline` or `Suspended`. While the browser navigates to the
 * sign-in page, the promise never settles, so that no error is shown briefly.
 */
export async function call<T>(path: string, init?: platform.FetchInit): Promise<T> {
  if (!runtime) throw new Offline(await whyNoRuntime());
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await runtime.fetch(path, init);
      return (await response.json()) as T;
    } catch (error) {
      // The answer was cut off, or is not JSON.
      if (error instanceof SyntaxError) throw new Offline("The backend’s answer cannot be read.");
      if (!(error instanceof runtime.PlatformError)) throw error;
      // The session of an account ended, or this network has too many guests.
      // In both cases the player must sign in, with a full page load.
      if (error.is("session-expired") || error.is("guest-limit-reached")) {
        location.assign(runtime.loginUrl());
        return new Promise(() => {});
      }
      // Neither a retry nor another sign-in ends a suspension.
      if (error.is("account-suspended")) throw new Suspended(error.message);
      // Too many new guests at one address: this limit ends in a moment.
      const pause = PAUSES_MS[attempt];
      if (error.status === 429 && error.type === "" && pause !== undefined) {
        // The pause is random, so that not all players retry at once.
        await new Promise((done) => setTimeout(done, pause * (0.75 + Math.random() / 2)));
        continue;
      }
      // The game is deployed without a backend: requests to /api/ reach the
      // game's files, which only allow GET. See "The backend" in README.md.
      if (error.is("not-found") || error.is("method-not-allowed"))
        throw new Offline("This game has no backend yet.");
      // Status 0 is a network error, any other status one of the backend.
      throw new Offline(error.status === 0 ? "You seem to be offline." : error.message);
    }
  }
}

/** Why the runtime's script could not be loaded: whoever serves it answers with a problem then. */
async function whyNoRuntime(): Promise<string> {
  const body: unknown = await fetch("/__platform/runtime.js")
    .then((response) => response.json())
    .catch(() => undefined);
  const detail =
    typeof body === "object" && body !== null && "detail" in body ? body.detail : undefined;
  return typeof detail === "string" ? detail : "The platform’s runtime did not load.";
}

/** The player, with the best score. `sub` identifies the player, `username` is
 * for display. */
export interface Player {
  readonly sub: string;
  readonly username: string;
  readonly is_anon: boolean;
  readonly best: number;
}

/** Returns the player. */
export const whoPlays = (): Promise<Player> => call<Player>("/api/me");

/** Sends a score. Returns the best score after it. */
export const sendScore = (score: number): Promise<{ best: number }> =>
  call("/api/score", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ score }),
  });

/** The addresses to sign in and to change one's name; both lead back here. */
export const links = {
  signIn: (): string => runtime?.loginUrl() ?? "",
  profile: (): string => runtime?.profileUrl() ?? "",
};

/** Signs the player out of all games of the platform, and restarts this one. */
export const signOut = async (): Promise<void> => runtime?.signOut();
