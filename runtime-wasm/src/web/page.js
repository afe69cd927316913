// The steps of each call, and the browser functions of the module. The rules are in the module, in
// Rust; numbers alone pass between both. The native functions are taken when the runtime starts,
// before a framework or the game replaces them.

const { location, document, performance, Date, URL, Request, Promise } = globalThis;

/**
 * The exports of the module (runtime-wasm/src/exports.rs). Undefined until it has started, for all
 * that can run before.
 *
 * @type {{
 *   ask(caller: number, want: number): void;
 *   begin(request: number): boolean;
 *   isWanted(request: number, isToken: boolean, isNew: boolean): boolean;
 *   end(request: number, status: number, isToken: boolean, isExpired: boolean, time: number, chance: number): void;
 *   hasToken(): boolean;
 *   forget(): void;
 *   wake(isRestored: boolean, isInDoubt?: boolean): void;
 *   look(isVisible: boolean, isUsed: boolean, interval: number): boolean;
 *   goAway(): boolean;
 *   keepRecord(hash: number, bytes: number, isUrgent: boolean): number;
 *   takeBatch(isAtOnce: boolean): number;
 *   takeLeftOut(): number;
 *   endBatch(size: number, records: number, pause: number): boolean;
 * }}
 */
export let wasm;
/** @param {any} exports */
export const useModule = (exports) => {
  wasm = exports;
};

/** @type {typeof fetch} */
let nativeFetch;
/** @type {string} */
let auth;
/** @type {URL} */
export let platformUrl;
/** @type {boolean} */
let local;
/** Whether the auth service's cookie never comes from this page: the game has a session of its own. */
export let isApart = false;
/** Whether the page is in a frame of another site, which has a player of its own. */
export let isEmbedded = false;

/**
 * Sets the auth service's address, the platform's origin, and whether the page comes from a local
 * dev server, which issues tokens of test players in place of the auth service.
 *
 * @param {string} authUrl
 * @param {string} platformOrigin
 * @param {boolean} isLocal
 */
export const connect = (authUrl, platformOrigin, isLocal) => {
  nativeFetch = fetch;
  auth = authUrl;
  platformUrl = new URL(platformOrigin);
  local = isLocal;
  // A pane of the Build page has its own auth service.
  isApart = !local && !isOnPlatform(location) && !authUrl.startsWith(location.origin);
  try {
    isEmbedded = isApart && !top?.location.href;
  } catch {
    // The page that shows the frame is of another origin.
    isEmbedded = isApart;
  }
};

/**
 * Whether the address is the platform's, or on a sub-domain of it.
 *
 * @param {URL | Location} url
 */
const isOnPlatform = (url) =>
  url.protocol === platformUrl.protocol && ("." + url.host).endsWith("." + platformUrl.host);

/**
 * Returns where to go after signing out, by default the game's start page. Throws for other sites.
 *
 * @param {string | URL | null} [redirect]
 */
export const destination = (redirect) => {
  const url = resolve(redirect || "/");
  if (!isOwn(url) && !isOnPlatform(url)) {
    throw new TypeError("platform.signOut leads to this game or the platform only");
  }
  return url;
};

/** Settles when the page is visible to a player, not only prerendered. */
const shown = async () => {
  if (document.prerendering) {
    await new Promise((shown) => {
      document.addEventListener("prerenderingchange", shown, { once: true });
    });
  }
};

/** The error that `platform.fetch` and `platform.getAccessToken` reject with. */
export class PlatformError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} type
   * @param {string} requestId
   */
  constructor(status, message, type, requestId) {
    super(message);
    /** @type {"PlatformError"} */
    this.name = "PlatformError";
    this.status = status;
    this.type = type;
    this.requestId = requestId;
  }

  /** @param {string} slug */
  is(slug) {
    return hasType(this, slug);
  }
}

/**
 * Whether this is the error's type, or its last segment.
 *
 * @param {PlatformError} error
 * @param {string} slug
 */
const hasType = ({ type }, slug) =>
  slug != "" && (type === slug || type.split(/[/#:]/).pop() === slug);

/**
 * Returns a member that is a non-empty string.
 *
 * @param {Record<string, unknown> | undefined} value
 * @param {string} member
 */
const text = (value, member) => (typeof value?.[member] == "string" && value[member]) || "";

/**
 * Returns the error that a call rejects with: from the response (RFC 9457) if it explains the
 * problem, else with this sentence and type.
 *
 * @param {number} status
 * @param {string} sentence
 * @param {string} type
 * @param {Answer} [answer]
 */
export const problem = (status, sentence, type, answer) =>
  new PlatformError(
    status,
    text(answer, "detail") || sentence,
    text(answer, "type") || type,
    text(answer, "request_id") || text(answer, "header"),
  );

/**
 * What a call rejects with after a response that failed; status 0 means that there was none.
 *
 * @param {number} status
 * @param {Answer} [answer]
 */
const refusal = (status, answer) =>
  problem(
    status,
    /** @type {Record<number, string>} */ ({
      0: "No answer arrived. Please check your connection and try again.",
      401: "You are not signed in.",
      403: "You are not allowed to do this.",
      404: "This could not be found.",
      429: "Too many requests. Please try again in a moment.",
    })[status] || "Something went wrong. Please try again.",
    "",
    answer,
  );

/**
 * Whether the account's session ended.
 *
 * @param {PlatformError} [error]
 */
const isExpired = (error) => !!error && hasType(error, "session-expired");

export const monotonic = () => performance.now();
export const wall = () => Date.now();

/** Whether the page has no origin of its own, as in a sandboxed frame or from a file. */
const isOpaque = () => globalThis.origin === "null";

export const isLocal = () => local;

/**
 * The listener for the result of a request for a test player's token.
 *
 * @type {((error?: PlatformError) => void) | undefined}
 */
let onToken;
/** @param {(error?: PlatformError) => void} callback */
export const follow = (callback) => {
  onToken = callback;
};

/**
 * Returns what a token says of its player. Throws if it is not a JWT.
 *
 * @param {any} token
 */
export const claims = (token) =>
  JSON.parse(
    // A JWT's parts are base64url (RFC 7515 §2), which atob does not read, of UTF-8.
    decodeURIComponent(escape(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")))),
  );

/**
 * The player of the last token: its `sub`.
 *
 * @type {string | undefined}
 */
export let known;

/**
 * Tells the game when another player plays than before, or when the player became unknown.
 *
 * @param {string} [sub]
 */
export const become = (sub) => {
  if (known && known !== sub) dispatchEvent(new Event("platform:playerchange"));
  known = sub;
};

/** Which token a caller accepts, in place of the number of the request whose token was refused. */
const ANY = 0;
const FRESH = -1;
const PLAYING = -2;
/** The status of a request that is not sent. */
const REFUSED = 403;

/**
 * A token, and the number of the request that brought it.
 *
 * @typedef {{ token: string, number: number }} Held
 * @type {Held}
 */
let held;
/**
 * Why the last request for a token failed, if it did.
 *
 * @type {PlatformError | undefined}
 */
let failed;
/**
 * The callers that wait for a token, by their numbers. Neither this nor a token has a prototype, which
 * a page may have changed: none of its code may run while the module tells an outcome.
 *
 * @type {Record<number, (isToken: boolean) => void>}
 */
const callers = /** @type {any} */ ({ __proto__: null });
let asked = 0;

/**
 * Returns a token, by the rules of the module.
 *
 * @param {number} want
 * @returns {Promise<Held>}
 */
const obtain = (want) =>
  new Promise((fulfil, reject) => {
    const caller = ++asked;
    callers[caller] = (isToken) => (isToken ? fulfil(held) : reject(failed));
    wasm.ask(caller, want);
  });

/**
 * The module answers a caller: with the token in hand, or with the last failure.
 *
 * @param {number} caller
 * @param {boolean} isToken
 */
export const tell = (caller, isToken) => {
  callers[caller](isToken);
  delete callers[caller];
};

/**
 * The module starts a request for a token, for all callers that wait for it.
 *
 * @param {number} number
 */
export const exchange = async (number) => {
  // Callers of the same moment join before the request starts.
  await shown().catch(() => {});
  if (!wasm.begin(number)) return;
  let status = REFUSED;
  let token = "";
  let time = 0;
  let chance = 0;
  /** @type {Answer} */
  let answer = {};
  let error;
  if (isOpaque()) {
    error = problem(
      0,
      "The game cannot know its player here: the page has no origin of its own, as in a sandboxed frame without allow-same-origin or in a file.",
      "unsupported-context",
    );
  } else {
    try {
      const response = await mint();
      status = response.ok ? 0 : response.status;
      answer = await answered(response, true);
      time = /** @type {any} */ (answer.seconds) * 1000;
      if (!status) token = text(answer, "access_token");
      // The page's own Math.random may be one that the game needs unused.
      else chance = crypto.getRandomValues(new Uint8Array(1))[0];
    } catch {
      status = 0;
    }
    error = token ? undefined : refusal(status, answer);
  }
  if (!wasm.isWanted(number, !!token, !!answer.is_new)) return;
  failed = error;
  if (token) held = /** @type {any} */ ({ __proto__: null, token, number });
  wasm.end(number, status, !!token, isExpired(error), time, chance);
  // The page's own code may run here, and finds the new token.
  onToken?.(error);
  try {
    become(claims(token).sub);
  } catch {
    // There is no token, or it is no JWT.
    if (isExpired(error)) become();
  }
};

/**
 * `platform.getAccessToken`.
 *
 * @param {boolean} isForced
 */
export const getAccessToken = async (isForced) => (await obtain(isForced ? FRESH : ANY)).token;

/** Returns a token to send a heartbeat with. A guest who begins with the first one needs a second. */
export const tokenToPlay = async () => {
  await obtain(PLAYING);
  return (await obtain(PLAYING)).token;
};

/** The current token, or undefined. */
export const heldToken = () => (wasm.hasToken() ? held.token : undefined);

/**
 * The channel on which the tabs of this game tell each other that the player signed out.
 *
 * @type {BroadcastChannel | undefined}
 */
let channel;

/**
 * Listens to the other tabs. A page in the back/forward cache hears nothing.
 *
 * @param {() => void} signedOut
 */
export const listen = (signedOut) => {
  try {
    channel = new BroadcastChannel("platform");
    channel.onmessage = signedOut;
  } catch {
    // A browser that forbids storage also forbids this. The next token shows that the player
    // changed.
  }
};
export const stopListening = () => channel?.close();

/** The test player of this tab: "guest/1" to "user/10". */
export const player = () => {
  try {
    return sessionStorage.getItem("platform-player") ?? "guest/1";
  } catch {
    return "guest/1";
  }
};

/**
 * Plays as another test player, in this tab.
 *
 * @param {string} player
 */
export const play = (player) => {
  try {
    sessionStorage.setItem("platform-player", player);
  } catch {
    // Without storage there is test guest 1.
  }
};

const askForToken = () => (local ? report("/__platform/token/" + player()) : post("/token"));

/**
 * The page's first request for a token, if it was made before the module started.
 *
 * @type {Promise<Response> | undefined}
 */
let firstMint;
/** Whether that request was sent. */
export let hasMinted = false;

/** Requests the page's first token as the module would, for `mint` to return its response. */
export const mintEarly = () => {
  if (isOpaque()) return;
  firstMint ??= shown().then(() => {
    hasMinted = true;
    return askForToken();
  });
  // Whoever asked for the token gets the error.
  firstMint.catch(() => {});
};

/** Requests a token. */
const mint = () => {
  const first = firstMint;
  firstMint = undefined;
  return first ?? askForToken();
};

/**
 * Sends a POST without a body or custom headers, so without a preflight: to the auth service, or to
 * the game's own address, if that has a session of its own.
 *
 * @param {string} path
 */
const post = (path) =>
  nativeFetch(
    isApart ? location.origin + "/__platform" + path + (isEmbedded ? "?framed" : "") : auth + path,
    { method: "POST", credentials: "include" },
  );

/** Ends the player's session. Test players have none, so there is no response. */
const endSession = async () => (local ? play("guest/1") : post("/sign-out"));

/**
 * Sends a POST to the game's own address, whatever the page's base address.
 *
 * @param {string} path
 * @param {string} [body]
 * @param {string} [token]
 * @param {boolean} [keepalive]
 */
export const report = (path, body, token, keepalive) => {
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  const init = { method: "POST", headers, body, keepalive };
  const sent = nativeFetch(location.origin + path, init);
  // The browser refuses a request that exceeds its budget for `keepalive`.
  return keepalive
    ? sent.catch(() => nativeFetch(location.origin + path, { ...init, keepalive: false }))
    : sent;
};

/**
 * Reads a response. `seconds` is how long its token is valid or, without readable JSON, how long to
 * wait before the next request. While `minting`, a failure without a reason on a local dev server
 * gets a detail that says what the dev server must do.
 *
 * @typedef {Record<string, unknown>} Answer
 * @param {Response} response
 * @param {boolean} [minting]
 * @returns {Promise<Answer>}
 */
const answered = async (response, minting) => {
  const { headers, status } = response;
  let body;
  try {
    // A missing header is `null`, which does not match.
    if (/json/.test(/** @type {string} */ (headers.get("content-type")))) {
      body = await response.json();
    }
  } catch {
    // It is not readable.
  }
  return {
    detail:
      local &&
      minting &&
      `The dev server gave no test player (${status}): start it with \`platform dev\`.`,
    ...body,
    header: headers.get("X-Request-Id"),
    seconds: body && status < 503 ? body.expires_in : !local && headers.get("Retry-After"),
  };
};

/**
 * The address, resolved as this page does. Throws a TypeError if it is not valid.
 *
 * @param {any} [address] text, a URL, a Request, or anything else that a game passes
 */
export const resolve = (address) => new URL(address?.url ?? address ?? location, document.baseURI);

/**
 * Whether the address belongs to the game. False also for an address that only has the page's
 * origin, such as blob:.
 *
 * @param {URL} url
 */
export const isOwn = (url) => url.origin === location.origin && url.protocol === location.protocol;

/**
 * Whether the body is a stream, which can be sent only once.
 *
 * @param {string | URL | Request} input
 * @param {RequestInit | null} [init]
 */
const streams = (input, init) =>
  init?.body instanceof ReadableStream ||
  (input instanceof Request &&
    // In an engine that does not expose a request's body, its method decides.
    (input.body === undefined ? !/^(GET|HEAD)$/.test(input.method) : !!input.body));

/**
 * Returns the call's request, which is read only once: what is checked is what is sent. Throws a
 * TypeError if it must not be sent, or if fetch itself would reject with one.
 *
 * @param {string | URL | Request} input
 * @param {RequestInit | null} [init]
 */
export const request = (input, init) => {
  if (streams(input, init)) {
    throw new TypeError("platform.fetch cannot send a stream: it may have to send it twice");
  }
  const made = new Request(input, init ?? undefined);
  if (!isOwn(new URL(made.url))) {
    throw new TypeError("platform.fetch calls the game's own address only");
  }
  if (made.mode == "no-cors") {
    throw new TypeError("platform.fetch cannot be no-cors: it sends the player's token");
  }
  return made;
};

/**
 * Settles like the promise, or rejects with the reason of the abort if that comes first.
 *
 * @template T
 * @param {Request} request
 * @param {() => Promise<T>} start
 * @returns {Promise<T>}
 */
const abortable = ({ signal }, start) =>
  new Promise((fulfil, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort);
    start()
      .then(fulfil, reject)
      .then(() => signal.removeEventListener("abort", abort));
  });

/**
 * Sends the request with a token: any, or another than the one that a request brought before.
 *
 * @param {Request} request
 * @param {number} want
 * @returns {Promise<[Response, number]>} the response, and the number of the token's request
 */
const transmit = async (request, want) => {
  const { token, number } = await abortable(request, () => obtain(want));
  request.headers.set("Authorization", "Bearer " + token);
  try {
    return [await abortable(request, () => nativeFetch(request)), number];
  } catch {
    // WebKit rejects an aborted fetch with a reason of its own.
    throw request.signal.aborted ? request.signal.reason : refusal(0);
  }
};

/**
 * `platform.fetch`, with the request that was made of its arguments.
 *
 * @param {Request} request
 */
export const call = async (request) => {
  const again = request.clone();
  let [response, number] = await transmit(request, ANY);
  if (response.status === 401) [response] = await transmit(again, number);
  if (response.ok) return response;
  throw refusal(response.status, await answered(response));
};

/**
 * `platform.signOut`. Leaves the page, and tells the game's other tabs.
 *
 * @param {string | URL | null} [redirect]
 */
export const signOut = async (redirect) => {
  const url = destination(redirect);
  const response = await endSession().catch(() => {
    throw refusal(0);
  });
  /** @type {Answer | undefined} */
  const answer = response ? await answered(response) : undefined;
  if (response && !response.ok) throw refusal(response.status, answer);
  wasm.forget();
  channel?.postMessage(0);
  location.assign(
    isApart && !isEmbedded
      ? `${auth}/sign-out?redirect=${encodeURIComponent(url.href)}&code=${answer?.code}`
      : url,
  );
};
