// The browser runtime of the platform, for TypeScript.
//
// Copy this file into your project, to any folder that your tsconfig.json
// includes. There is nothing to import: the page loads the runtime with
//
//     <script defer src="/__platform/runtime.js"></script>
//
// in its <head>, before your own scripts. From then on, `platform` is defined
// in scripts and in modules, also as `globalThis.platform` and
// `window.platform`. Outside of a page, such as in a worker or in Node.js, it
// is not defined.
//
// For every optional argument, `null` means the same as leaving it out.

/**
 * The player and the platform, as your game sees them.
 *
 * There is always a player: the first visit creates a guest, without asking
 * anything. `platform.player()` says who it is, and `platform.fetch` calls your
 * backend as that player. The object is frozen.
 *
 * @example
 * const { id, username, isGuest } = await platform.player();
 */
declare var platform: Platform;

/** The type of the global `platform`, to pass it on or to replace it in a test. */
interface Platform extends Readonly<platform.Members> {}

interface WindowEventMap {
  /**
   * Another player plays than before: the player signed out or in, in another
   * tab or another game, or the account's session ended. The old token was
   * dropped, so `platform.fetch` and `platform.getAccessToken` now act for the
   * new player. The event has no details: `platform.player()` says who plays.
   *
   * @example
   * addEventListener("platform:playerchange", async () => {
   *   nameTag.textContent = (await platform.player()).username;
   * });
   */
  "platform:playerchange": Event;
}

/** The types of the global `platform`. */
declare namespace platform {
  /** The members of `platform`, which are all read-only. */
  interface Members {
    /**
     * Calls your game's own backend as the player.
     *
     * It works like the browser's `fetch`, with three differences:
     *
     * - It sends the player's game token, as `Authorization: Bearer …`. Your
     *   other headers stay unchanged.
     * - It resolves only for a 2xx response. There is no `response.ok` to
     *   check.
     * - After a 401 from the backend, it sends the request once more, with a
     *   new token, and the second response counts. So the body must be one that
     *   can be sent twice, which a stream cannot.
     *
     * @param path A path such as `"/api/score"`, any address of the page's own
     * origin, or a `Request` without a body.
     * @param init As for the browser's `fetch`: `method`, `headers`, `body`,
     * `signal` …
     * @returns The response, with a status from 200 to 299.
     * @throws {platform.PlatformError} Rejects if the backend or the platform
     * responds with an error: with its `status` and, from a Problem Details
     * body, its `message` and `type`. Rejects with `status` 0 if no response
     * arrived. If there is no token, it sends nothing and rejects with the
     * error of {@link Members.getAccessToken}.
     * @throws {TypeError} Rejects if the address does not belong to your game,
     * because no other site may get the token, or if the body is a stream.
     * Nothing was sent.
     * @throws The reason of `init.signal` if it aborts: an `AbortError`, unless
     * you gave another reason.
     *
     * @example
     * try {
     *   await platform.fetch("/api/score", {
     *     method: "POST",
     *     headers: { "Content-Type": "application/json" },
     *     body: JSON.stringify({ points: 120 }),
     *   });
     * } catch (error) {
     *   if (!(error instanceof platform.PlatformError)) throw error;
     *   if (error.is("session-expired")) location.href = platform.loginUrl();
     *   else showToPlayer(error.message);
     * }
     */
    fetch(path: string | URL | Request, init?: FetchInit | null): Promise<Response>;

    /**
     * Returns the player's game token, for requests that {@link Members.fetch}
     * cannot make, such as a WebSocket.
     *
     * Call it each time, and do not store the token: the runtime keeps it until
     * shortly before it expires, so most calls send no request, and
     * simultaneous calls share one. For a new visitor, it creates a guest. The
     * token is a secret of the player: send it only to your own backend.
     *
     * @param options `{ forceRefresh: true }` if your backend has rejected the
     * token.
     * @returns The token, to be sent as a bearer token. It is signed (ES256),
     * and valid only for your game.
     * @throws {platform.PlatformError} Rejects if there is no token:
     * - `is("session-expired")`: the session of the player's account ended.
     *   Navigate to {@link Members.loginUrl}. Until the page is loaded again,
     *   all further calls reject with the same error.
     * - `is("guest-limit-reached")`: too many guests play from the player's
     *   network. Navigate to {@link Members.loginUrl}: a player who signs in
     *   can play.
     * - `is("account-suspended")`: show `message`. Do not retry, and do not
     *   send the player to the sign-in page.
     * - `is("runtime-unavailable")`: the page or the browser forbids WebAssembly;
     *   the console says what to allow.
     * - `is("unsupported-context")`: the page has no origin, as in a sandboxed
     *   frame without `allow-same-origin`.
     * - `status` 0 and an empty `type`: no response arrived, most likely
     *   because of the network.
     * - `status` 429 and an empty `type`: too many guests are being created at
     *   this network address. A second attempt, after the time that the
     *   platform named, was refused as well. Try again in a moment.
     *
     * @example
     * const token = await platform.getAccessToken();
     * const socket = new WebSocket(`wss://${location.host}/api/live`, ["bearer", token]);
     */
    getAccessToken(options?: TokenOptions | null): Promise<string>;

    /**
     * Returns who plays: the player's id, name, and whether it is a guest.
     *
     * It needs no backend. A first visit creates a guest, as
     * {@link Members.getAccessToken} does, and most other calls send no
     * request. Ask again after the event `platform:playerchange`.
     *
     * Whoever opens the page can change what it says there. A backend that
     * stores something for a player reads the player from the token that it
     * verifies.
     *
     * @throws {platform.PlatformError} Rejects if there is no token, with the
     * error of {@link Members.getAccessToken}.
     *
     * @example
     * const { username, isGuest } = await platform.player();
     * nameTag.textContent = username;
     * signInButton.hidden = !isGuest;
     */
    player(): Promise<Player>;

    /**
     * Returns the address of the sign-in page.
     *
     * Open it with a full page load (`location.href = …`, or an ordinary link),
     * not with a client-side router. A guest who signs in for the first time
     * keeps the `sub`, and with it the progress. If the external identity
     * already has an account, the player comes back as that account, and the
     * guest's data stays with the guest.
     *
     * On a local dev server, this is the page to choose a test player.
     *
     * @param redirect The address to which the player comes back: an address of
     * your game, absolute or relative to the page. By default the current page.
     * @returns The address, not a promise. The auth service refuses a
     * `redirect` to any other site than the platform and its games, and shows
     * the player a page that says so.
     * @throws {TypeError} If `redirect` is not a valid address.
     *
     * @example
     * signInButton.onclick = () => { location.href = platform.loginUrl(); };
     */
    loginUrl(redirect?: string | URL | null): string;

    /**
     * Returns the address of the page where the player can change the username.
     *
     * Open it with a full page load. The page that the player comes back to
     * gets a token with the new name as its `username`. A backend that stores
     * names must update them from tokens. Key data on `sub`, never on the name.
     *
     * On a local dev server, this leads to the page to choose a test player.
     *
     * @param redirect The address to which the player comes back: an address of
     * your game, absolute or relative to the page. By default the current page.
     * @returns The address, not a promise. The auth service refuses a
     * `redirect` to any other site than the platform and its games, and shows
     * the player a page that says so.
     * @throws {TypeError} If `redirect` is not a valid address.
     */
    profileUrl(redirect?: string | URL | null): string;

    /**
     * Signs the player out of the platform, in this game and all others, and
     * then loads `redirect`.
     *
     * The next visit creates a new guest. A guest who signed out can be
     * restored for 30 days, from the sign-in page in the same browser: say so
     * before you offer it. On a local dev server, the player is test guest 1
     * again.
     *
     * @param redirect The next page: an address of your game or of the
     * platform. By default your game's start page `/`.
     * @returns Resolves when the player is signed out and the browser leaves
     * the page.
     * @throws {platform.PlatformError} Rejects if the player could not be
     * signed out, with `status` 0 if no response arrived. The player stays
     * signed in, and the page stays open.
     * @throws {TypeError} Rejects if `redirect` leads to another site. The
     * player stays signed in.
     */
    signOut(redirect?: string | URL | null): Promise<void>;

    /**
     * Adds an error to your project's frontend log, for errors that your game
     * has caught.
     *
     * Uncaught errors, unhandled rejections and output of `console` are logged
     * without it. On a local dev server, nothing is sent.
     *
     * @param message What happened. Up to 8 KiB of it are kept.
     * @param metadata Any JSON value that helps to understand the error. Do not
     * include secrets: everybody in the project can read it.
     * @returns Resolves soon. You need not wait for it: the records are sent
     * together, at the latest when the player leaves the page.
     * @throws Nothing. It never rejects, whatever its arguments and the network
     * are: records that cannot be sent are dropped.
     *
     * @example
     * void platform.reportError("the save file is unreadable", { slot: 3, bytes: 0 });
     */
    reportError<Metadata>(
      message: string,
      metadata?: Json | (Metadata & AsJson<Metadata>),
    ): Promise<void>;

    /** The version of the runtime on this page, such as `"1.4.0"`. */
    version: string;

    /**
     * The class of the errors that the calls reject with, for `instanceof`. See
     * {@link platform.PlatformError} for its members.
     *
     * @example
     * if (error instanceof platform.PlatformError && error.status === 0) {
     *   showToPlayer("You seem to be offline.");
     * }
     */
    PlatformError: PlatformErrorClass;
  }

  /** Who plays. The object is frozen: it does not follow a change of the player. */
  interface Player {
    /**
     * The player's id: a UUID, the `sub` of the player's tokens. It is the same
     * in every game and never changes. Key data on it.
     */
    readonly id: string;

    /** The name to show. The player can change it. */
    readonly username: string;

    /**
     * Whether the player has not signed in yet. A guest is a full player; by
     * signing in, a guest keeps the id and can play on other devices.
     */
    readonly isGuest: boolean;
  }

  /**
   * The error that {@link Members.fetch}, {@link Members.getAccessToken} and
   * {@link Members.signOut} reject with: the platform or your backend responded
   * with an error, or no response arrived.
   *
   * It is made from the Problem Details body (RFC 9457) of the response.
   * Without such a body, it has the `status` of the response, an empty `type`,
   * and a plain sentence as `message`. Use `instanceof` to tell it from other
   * errors. Games cannot create it.
   */
  interface PlatformError extends Error {
    /** Always `"PlatformError"`. */
    readonly name: "PlatformError";

    /** One sentence that can be shown to the player: the body's `detail`. */
    readonly message: string;

    /**
     * The HTTP status, or `0` if no response arrived, most likely because of
     * the player's network.
     */
    readonly status: number;

    /**
     * The kind of problem: the body's `type` as received, such as
     * `"https://auth.example/problems/session-expired"`. Empty if the response
     * named none. Compare it with {@link PlatformError.is}.
     */
    readonly type: string;

    /**
     * The id under which the request was logged, for a report of the problem.
     * Empty if there is none, for example if no response arrived.
     */
    readonly requestId: string;

    /**
     * Returns whether this is the problem that `slug` names: `type` is the
     * slug, or ends with it after its last `/`, `#` or `:`.
     *
     * Editors suggest the platform's own slugs; your backend may have others.
     * For any other string, it returns false and never throws.
     *
     * @example
     * if (error.is("session-expired")) location.href = platform.loginUrl();
     */
    is(slug: Problem | (string & {})): boolean;
  }

  /** The class itself, for `instanceof`. Games cannot construct or extend it. */
  interface PlatformErrorClass extends Function {
    readonly prototype: PlatformError;
  }

  /**
   * The platform's own problems. A game usually gets only the first four and
   * the last two. The others are for tools and pages of the platform, or mean
   * that something is wrong.
   */
  type Problem =
    /** The account's session ended: send the player to `loginUrl()`. */
    | "session-expired"
    /** Too many guests play from the player's network: send them to `loginUrl()`. */
    | "guest-limit-reached"
    /** The account is suspended: show `message`, do not retry. */
    | "account-suspended"
    /** The game was taken down: show `message`, do not retry. */
    | "project-disabled"
    | "unknown-origin"
    | "unknown-host"
    | "not-found"
    | "not-signed-in"
    | "not-allowed"
    | "step-up-required"
    | "invalid-request"
    | "invalid-redirect"
    | "invalid-username"
    | "username-taken"
    | "slug-taken"
    | "domain-taken"
    | "invalid-domain"
    | "quota-exceeded"
    | "not-deployed"
    | "deployment-invalid"
    | "payload-too-large"
    | "unsupported-media-type"
    | "method-not-allowed"
    | "too-many-requests"
    | "backend-unreachable"
    | "backend-timeout"
    | "unavailable"
    | "internal"
    /** The page or the browser forbids WebAssembly: the console says what to allow. */
    | "runtime-unavailable"
    /** The page has no origin of its own, as in a sandboxed frame. */
    | "unsupported-context";

  /** The options of `platform.fetch`. */
  interface FetchInit extends Omit<RequestInit, "body"> {
    /**
     * The body: text, form data, or bytes. It may have to be sent twice, so a
     * `ReadableStream` makes the call reject with a `TypeError`.
     */
    body?: FetchBody | null | undefined;
  }

  /** A body that can be sent a second time. */
  type FetchBody = string | FormData | Blob | URLSearchParams | BufferSource;

  /** The options of `platform.getAccessToken`. */
  interface TokenOptions {
    /**
     * Whether to drop the current token and request a new one. Use it only
     * after a backend has rejected the token: each such call sends a request.
     */
    forceRefresh?: boolean | null | undefined;
  }

  /** The type of a value if JSON has such values, else one that no value has. */
  type AsJson<Value> = Value extends string | number | boolean | null | undefined
    ? Value
    : Value extends bigint | symbol | ((...values: never[]) => unknown)
      ? never
      : Value extends object
        ? { readonly [Member in keyof Value]: AsJson<Value[Member]> }
        : never;

  /** Any JSON value. */
  type Json =
    | string
    | number
    | boolean
    | null
    | readonly Json[]
    | { readonly [member: string]: Json | undefined };
}
