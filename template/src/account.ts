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
 * Whether the game has a backend. `npm run dev` starts one. If your backend runs on the internet
 * and `platform backend set` has named it, write `true` here, build and deploy. Until then the
 * deployed game asks none, and keeps the best score in the player's browser.
 */
const HAS_BACKEND: boolean = import.meta.env.DEV;

/**
 * Runs an action of the runtime for the player, and returns its result.
 *
 * Rejects with `Offline` or `Suspended`. While the browser navigates to the
 * sign-in page, the promise never settles, so that no error is shown briefly.
 */
async function asPlayer<T>(action: (runtime: Platform) => Promise<T>): Promise<T> {
  if (!runtime) throw new Offline(await whyNoRuntime());
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await action(runtime);
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
      // Requests to /api/ reach the game's files, which only allow GET.
      if (error.is("not-found") || error.is("method-not-allowed"))
        throw new Offline("The backend cannot be found: see “The backend” in README.md.");
      // Status 0 is a network error, any other status one of the backend.
      throw new Offline(error.status === 0 ? "You seem to be offline." : error.message);
    }
  }
}

/** Calls the game's backend as the player, and returns its JSON answer. */
const call = <T>(path: string, init?: platform.FetchInit): Promise<T> =>
  asPlayer(async (runtime) => (await runtime.fetch(path, init)).json() as Promise<T>);

/** Why the runtime's script could not be loaded: whoever serves it answers with a problem then. */
async function whyNoRuntime(): Promise<string> {
  const body: unknown = await fetch("/__platform/runtime.js")
    .then((response) => response.json())
    .catch(() => undefined);
  const detail =
    typeof body === "object" && body !== null && "detail" in body ? body.detail : undefined;
  return typeof detail === "string" ? detail : "The platform’s runtime did not load.";
}

/** Returns who plays: `id` identifies the player, `username` is for display. */
export const whoPlays = (): Promise<platform.Player> => asPlayer((runtime) => runtime.player());

/** Returns the best score that this browser has kept for the player. */
export function keptBest(id: string): number {
  try {
    return Number(localStorage.getItem(`best ${id}`)) || 0;
  } catch {
    // The browser forbids storage.
    return 0;
  }
}

/** Keeps the best score in this browser. */
export function keepBest(id: string, score: number): void {
  try {
    localStorage.setItem(`best ${id}`, String(score));
  } catch {
    // The browser forbids storage: the score lasts until the page is left.
  }
}

/**
 * Lets the backend, if there is one, and this browser agree on the best score:
 * returns the greater one, which both know then.
 */
export async function agreeOnBest(here: number): Promise<number> {
  if (!HAS_BACKEND) return here;
  const { best } = await call<{ best: number }>("/api/me");
  return here > best ? sendScore(here) : best;
}

async function sendScore(score: number): Promise<number> {
  const { best } = await call<{ best: number }>("/api/score", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ score }),
  });
  return best;
}

/** The addresses to sign in and to change one's name; both lead back here. */
export const links = {
  signIn: (): string => runtime?.loginUrl() ?? "",
  profile: (): string => runtime?.profileUrl() ?? "",
};

/** Signs the player out of all games of the platform, and restarts this one. */
export const signOut = async (): Promise<void> => runtime?.signOut();
