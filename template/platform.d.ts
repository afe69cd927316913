// The browser runtime of the platform, for TypeScript.
//
// Copy this file into your own project, anywhere that your tsconfig.json
// includes. Nothing is imported: the page loads the runtime with
//
//     <script defer src="/__platform/runtime.js"></script>
//
// in its <head>, before your own scripts, and from then on `platform` is there,
// in scripts and modules alike, as `globalThis.platform` and `window.platform`
// too. Outside of a page (in a worker, in Node.js) it is not.
//
// Wherever an argument may be left out, `null` means the same as leaving it out.

/**
 * The player and the platform, as your game sees them.
 *
 * The player is already there: a first visit makes a guest, without a question
 * asked, and `platform.fetch` calls your backend as that player. Everything here
 * is frozen.
 *
 * @example
 * const answer = await platform.fetch("/api/me");
 * const me = await answer.json();
 */
declare var platform: Platform;

/** The type of the global `platform`, to hand it on or to stand in for it in a test. */
interface Platform extends Readonly<platform.Members> {}

interface WindowEventMap {
  /**
   * Somebody else plays than before: the player signed out or in, in another tab
   * or another game, or the account's session ended. The old token is gone, so
   * that `platform.fetch` and `platform.getAccessToken` are for whoever plays
   * now. It says no more: ask your backend who that is.
   *
   * @example
   * addEventListener("platform:playerchange", () => void showPlayer());
   */
  "platform:playerchange": Event;
}

/** The types that go with the global `platform`. */
declare namespace platform {
  /** The members of `platform`, all of them read only. */
  interface Members {
    /**
     * Calls your game's own backend as the player.
     *
     * Like the browser's `fetch`, with three differences:
     *
     * - The player's game token goes along, as `Authorization: Bearer …`. Your
     *   other headers stay as they are.
     * - Only a 2xx answer resolves. There is no `response.ok` to check.
     * - A 401 from the backend is answered with a fresh token, once: the second
     *   answer counts, whatever it is. This is why a body must be one that can be
     *   sent twice, and why a stream cannot be.
     *
     * @param path A path such as `"/api/score"`, or any address of the page's own
     * origin. A `Request` will do as well, if it has no body of its own.
     * @param init As for the browser's `fetch`: `method`, `headers`, `body`,
     * `signal` …
     * @returns The answer, its status between 200 and 299.
     * @throws {platform.PlatformError} Rejects when the backend or the platform
     * says no, with `status` and, if the answer was a Problem Details body,
     * `message` and `type` from it; with status `0` when no answer arrived at
     * all; and when there is no token to send, with the same error that
     * {@link Members.getAccessToken} gives, before anything was sent.
     * @throws {TypeError} Rejects when the address is not your game's own (the
     * token is the player's identity there, and goes nowhere else), and when the
     * body is a stream. Nothing was sent.
     * @throws The reason of `init.signal`, when it aborts: an `AbortError` unless
     * you gave another.
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
     * The player's game token, for what {@link Members.fetch} does not cover,
     * such as a WebSocket.
     *
     * Ask each time, and do not store it: the runtime keeps the token until
     * shortly before it expires, so that asking costs nothing, and everybody who
     * asks at one moment shares one request. A first-time visitor becomes a guest
     * here. The token is a secret of the player: send it to your own backend
     * only.
     *
     * @param options `{ forceRefresh: true }` when your backend has rejected the
     * token that you have.
     * @returns The token, to be sent as a bearer token. It is signed (ES256) for
     * your game alone.
     * @throws {platform.PlatformError} Rejects when there is no token:
     * - `is("session-expired")`: the player has an account, and its session ended.
     *   Navigate to {@link Members.loginUrl}. Until the page is loaded again,
     *   every further call rejects in the same way.
     * - `is("guest-limit-reached")`: too many guests play from the player's
     *   network. Navigate to {@link Members.loginUrl}; signing in is the way past
     *   it.
     * - `is("account-suspended")`: show `message`. Neither try again nor send the
     *   player to sign in.
     * - `is("runtime-unavailable")`: the page or the browser forbids WebAssembly;
     *   the console says what to allow.
     * - `is("unsupported-context")`: the page has no origin, as in a sandboxed
     *   frame without `allow-same-origin`.
     * - `status` 0 and an empty `type`: no answer arrived, most likely the
     *   network.
     * - `status` 429 and an empty `type`: many guests are being made at this
     *   address, and a second attempt, after the time that the platform named,
     *   was refused as well. Try again in a moment.
     *
     * @example
     * const token = await platform.getAccessToken();
     * const socket = new WebSocket(`wss://${location.host}/api/live`, ["bearer", token]);
     */
    getAccessToken(options?: TokenOptions | null): Promise<string>;

    /**
     * The address of the sign-in page.
     *
     * Go there with a full page load (`location.href = …`, or an ordinary link),
     * not with a router's client-side navigation. A guest who signs in for the
     * first time keeps their `sub` and with it their progress. One whose external
     * identity has an account already comes back as that account, and what the
     * guest had saved stays with the guest.
     *
     * On a local dev server this is the page where one picks a test user.
     *
     * @param redirect Where the player comes back to: an address of your game,
     * absolute or relative to the page. The current page, if left out.
     * @returns The address, at once. The auth service refuses a `redirect` that
     * is no game of the platform, and shows the player a page that says so.
     * @throws {TypeError} When `redirect` cannot be read as an address.
     *
     * @example
     * signInButton.onclick = () => { location.href = platform.loginUrl(); };
     */
    loginUrl(redirect?: string | URL | null): string;

    /**
     * The address of the page where the player changes their username.
     *
     * Go there with a full page load. The new name is in the `username` of the
     * next token, which the load on the way back brings. A backend that keeps
     * names must take them from there; data is keyed on `sub`, never on the name.
     *
     * On a local dev server this leads to the page where one picks a test user.
     *
     * @param redirect Where the player comes back to: an address of your game,
     * absolute or relative to the page. The current page, if left out.
     * @returns The address, at once. The auth service refuses a `redirect` that
     * is no game of the platform, and shows the player a page that says so.
     * @throws {TypeError} When `redirect` cannot be read as an address.
     */
    profileUrl(redirect?: string | URL | null): string;

    /**
     * Signs the player out of the platform, in this game and every other, and
     * then loads `redirect`.
     *
     * The next visit makes a new guest. A guest who signs out cannot come back as
     * the same one: say so before you offer it. On a local dev server the player
     * is test guest 1 again.
     *
     * @param redirect Where to go then: an address of your game or of the
     * platform. Your game's start page `/`, if left out.
     * @returns Resolves when the player is signed out and the page is about to be
     * left.
     * @throws {platform.PlatformError} Rejects when the player could not be
     * signed out, with `status` 0 when no answer arrived. The player stays signed
     * in, and the page stays.
     * @throws {TypeError} Rejects when `redirect` leads anywhere else. Nothing
     * has happened then.
     */
    signOut(redirect?: string | URL | null): Promise<void>;

    /**
     * Writes an error to your project's frontend logs, for what you caught
     * yourself.
     *
     * Uncaught errors, unhandled rejections and whatever goes to `console` get
     * there without it. Nothing is sent from a local dev server.
     *
     * @param message What happened. Up to 8 KiB of it are kept.
     * @param metadata Anything that JSON can say and that helps to understand it.
     * No secrets: everybody in the project can read it.
     * @returns Resolves soon, and need not be waited for: the records are sent
     * together, at the latest when the player leaves the page.
     * @throws Nothing, and it never rejects, whatever it is given and however the
     * network is: what cannot be sent is dropped.
     *
     * @example
     * void platform.reportError("the save file is unreadable", { slot: 3, bytes: 0 });
     */
    reportError(message: string, metadata?: Json): Promise<void>;

    /** The version of the runtime on this page, such as `"1.4.0"`. */
    version: string;

    /**
     * What the calls reject with, for `instanceof`. See
     * {@link platform.PlatformError} for what is in it.
     *
     * @example
     * if (error instanceof platform.PlatformError && error.status === 0) {
     *   showToPlayer("You seem to be offline.");
     * }
     */
    PlatformError: PlatformErrorClass;
  }

  /**
   * What {@link Members.fetch}, {@link Members.getAccessToken} and
   * {@link Members.signOut} reject with: the platform or your backend said no, or
   * nobody answered.
   *
   * Made from the Problem Details body (RFC 9457) of the answer. An answer
   * without one gives this error all the same, with its `status`, an empty
   * `type`, and a plain sentence as `message`. `instanceof` tells it from other
   * errors; it is not for games to make.
   */
  interface PlatformError extends Error {
    /** Always `"PlatformError"`. */
    readonly name: "PlatformError";

    /** One sentence, the body's `detail`, that can be shown to the player. */
    readonly message: string;

    /**
     * The HTTP status, or `0` when no answer arrived, which is most likely the
     * player's network.
     */
    readonly status: number;

    /**
     * Which problem it was: the body's `type` as received, such as
     * `"https://auth.example/problems/session-expired"`. Empty where the answer
     * named none. Compare it with {@link PlatformError.is}.
     */
    readonly type: string;

    /**
     * The id under which the request was logged, for a report of the problem.
     * Empty where there is none, as when no answer arrived.
     */
    readonly requestId: string;

    /**
     * Tells whether this is the problem that `slug` names: `type` is the slug, or
     * ends with it after its last `/`, `#` or `:`.
     *
     * The platform's own slugs are offered by the editor; your backend may have
     * others. It is false, and never throws, for any other string.
     *
     * @example
     * if (error.is("session-expired")) location.href = platform.loginUrl();
     */
    is(slug: Problem | (string & {})): boolean;
  }

  /** The class itself, for `instanceof`. It is not for games to construct or to extend. */
  interface PlatformErrorClass extends Function {
    readonly prototype: PlatformError;
  }

  /**
   * The problems that the platform itself names. The first four, and the last
   * two, are the ones a game meets: the rest is answered to tools and pages of
   * the platform, or says that something is out of order.
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

  /** What `platform.fetch` takes beside the path. */
  interface FetchInit extends Omit<RequestInit, "body"> {
    /**
     * What is sent: text, form data, or bytes. Not a stream: it may have to be
     * sent twice, and a `ReadableStream` makes the call reject with a
     * `TypeError`.
     */
    body?: FetchBody | null | undefined;
  }

  /** A body that can be sent a second time. */
  type FetchBody = string | FormData | Blob | URLSearchParams | BufferSource;

  /** What `platform.getAccessToken` takes. */
  interface TokenOptions {
    /**
     * Whether to leave the token that the runtime still holds and ask for a new
     * one: for when a backend has rejected it. Otherwise leave it out: each such
     * call is a request.
     */
    forceRefresh?: boolean | null | undefined;
  }

  /**
   * Anything that JSON can say. A value that an `interface` describes is taken as
   * a copy: `{ ...value }`.
   */
  type Json =
    | string
    | number
    | boolean
    | null
    | readonly Json[]
    | { readonly [member: string]: Json | undefined };
}
