// The player, and what to do when a call for the player fails. A game of your
// own wants this file as it is.

/** Thrown by `call` when the game can go on, but without its backend. */
export class Offline extends Error {}

/** Thrown by `call` when this player may not play. `message` says why. */
export class Suspended extends Error {}

/** The pauses before each further attempt, after a 429 that carries no problem. */
const PAUSES_MS = [1_000, 2_000, 4_000];

/** The runtime. It is missing only where its script could not be loaded. */
const runtime: Platform | undefined = globalThis.platform;

/**
 * Calls the game's backend as the player; its JSON answer.
 *
 * Rejects with `Offline` or `Suspended`. While the browser is on its way to the
 * sign-in page it does not settle at all, so that nothing flashes up.
 */
export async function call<T>(path: string, init?: platform.FetchInit): Promise<T> {
  if (!runtime) throw new Offline(await whyNoRuntime());
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await runtime.fetch(path, init);
      return (await response.json()) as T;
    } catch (error) {
      // An answer that broke off, or that is no JSON.
      if (error instanceof SyntaxError) throw new Offline("The backend’s answer cannot be read.");
      if (!(error instanceof runtime.PlatformError)) throw error;
      // The session of an account ended, or this network has too many guests:
      // either way, signing in is the way on. It wants a full page load.
      if (error.is("session-expired") || error.is("guest-limit-reached")) {
        location.assign(runtime.loginUrl());
        return new Promise(() => {});
      }
      // Neither a retry nor another sign-in lifts a suspension.
      if (error.is("account-suspended")) throw new Suspended(error.message);
      // The limit on new guests from one address: it passes in a moment.
      const pause = PAUSES_MS[attempt];
      if (error.status === 429 && error.type === "" && pause !== undefined) {
        // A little chance, so that a crowd does not come back all at once.
        await new Promise((done) => setTimeout(done, pause * (0.75 + Math.random() / 2)));
        continue;
      }
      // Deployed, but nothing answers under /api/, where the game's files know GET
      // alone: see "The backend" in README.md.
      if (error.is("not-found") || error.is("method-not-allowed"))
        throw new Offline("This game has no backend yet.");
      // Status 0 is the network; anything else is the backend's trouble.
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

/** Who plays, and their best score. `sub` is who they are, `username` is for display. */
export interface Player {
  readonly sub: string;
  readonly username: string;
  readonly is_anon: boolean;
  readonly best: number;
}

/** Who is playing. */
export const whoPlays = (): Promise<Player> => call<Player>("/api/me");

/** Sends a score; the best one after it. */
export const sendScore = (score: number): Promise<{ best: number }> =>
  call("/api/score", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ score }),
  });

/** Where to sign in, and where to change one's name; both lead back here. */
export const links = {
  signIn: (): string => runtime?.loginUrl() ?? "",
  profile: (): string => runtime?.profileUrl() ?? "",
};

/** Signs out of the platform, in every game, and starts this one again. */
export const signOut = async (): Promise<void> => runtime?.signOut();
