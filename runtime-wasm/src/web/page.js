// What the browser does for the module, without a rule in it: the rules are in
// Rust. The natives are taken when the runtime starts, before a framework or
// the game replaces them.

const { location, document, performance, Date, URL, Request, Promise } = globalThis;

let nativeFetch, onSettled, auth, origin, local;

/**
 * What to call when a promise settles, where the auth service is, the platform's origin, and
 * whether the page comes from a local dev server, which hands out tokens of test players in place
 * of the auth service.
 */
export const connect = (settled, authUrl, platformOrigin, isLocal) => {
  nativeFetch = fetch;
  onSettled = settled;
  auth = authUrl;
  origin = new URL(platformOrigin);
  local = isLocal;
};

/** Whether the address is the platform's, or on a sub-domain of it. */
const isOnPlatform = (url) =>
  url.protocol === origin.protocol && ("." + url.host).endsWith("." + origin.host);

/** Where the page may be sent after signing out, by default the game's start. Throws elsewhere. */
export const destination = (redirect) => {
  const url = resolve(redirect || "/");
  if (!isOwn(url) && !isOnPlatform(url)) {
    throw new TypeError("platform.signOut leads to this game or the platform only");
  }
  return url;
};


/** Tells the module's task how the promise ends. */
export const watch = (promise, task) => {
  promise.then(
    (value) => onSettled(task, true, value),
    (reason) => onSettled(task, false, reason),
  );
};

/** Settles when the page is there for a player: a page that is only rendered ahead is not. */
export const shown = async () => {
  if (document.prerendering) {
    await new Promise((shown) => {
      document.addEventListener("prerenderingchange", shown, { once: true });
    });
  }
};

/** A promise with the functions that settle it. */
export const deferred = () => {
  const made = {};
  made.promise = new Promise((fulfil, reject) => {
    made.fulfil = fulfil;
    made.reject = reject;
  });
  return made;
};

export const fulfil = (made, value) => made.fulfil(value);
export const reject = (made, reason) => made.reject(reason);
export const promise = (made) => made.promise;

/** What `platform.fetch` and `platform.getAccessToken` reject with. */
export class PlatformError extends Error {
  constructor(status, message, type, requestId) {
    super(message);
    this.name = "PlatformError";
    this.status = status;
    this.type = type;
    this.requestId = requestId;
  }

  is(slug) {
    return this.type === slug || this.type.split(/[/#:]/).pop() === slug;
  }
}

export const problem = (status, message, type, requestId) =>
  new PlatformError(status, message, type, requestId);

export const is = (error, slug) => error.is(slug);

export const monotonic = () => performance.now();
export const wall = () => Date.now();

/** Whether the page has no origin of its own, as in a sandboxed frame or from a file. */
export const isOpaque = () => globalThis.origin === "null";

/** A member that is a string and not empty, or undefined. */
export const text = (value, member) =>
  (typeof value?.[member] == "string" && value[member]) || undefined;

/** Seconds, or NaN. */
export const seconds = (value, member) => +value?.[member];

export const isLocal = () => local;

/** Who wants to know how a request for a test player's token ended. */
let onToken;
export const follow = (callback) => {
  onToken = callback;
};
export const announce = (error) => onToken?.(error);

/** The test player of this tab: "guest/1" to "user/10". */
export const player = () => {
  try {
    return sessionStorage.getItem("platform-player") ?? "guest/1";
  } catch {
    return "guest/1";
  }
};

/** Plays as another test player, in this tab. */
export const play = (player) => {
  try {
    sessionStorage.setItem("platform-player", player);
  } catch {
    // Without storage there is test guest 1.
  }
};

/** Asks for a token. */
export const mint = () => (local ? report("/__platform/token/" + player()) : post("/token"));

/** POST without a body or a header of our own, so without a preflight. */
const post = (path) => nativeFetch(auth + path, { method: "POST", credentials: "include" });

/** Ends the player's session. */
export const endSession = async () => (local ? play("guest/1") : post("/sign-out"));

/** POST to the game's own address, whatever the page's base address. */
export const report = (path, body, token, keepalive) => {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = "Bearer " + token;
  const init = { method: "POST", headers, body, keepalive };
  const sent = nativeFetch(location.origin + path, init);
  // The browser refuses what is over its budget for pages that go away.
  return keepalive
    ? sent.catch(() => nativeFetch(location.origin + path, { ...init, keepalive: false }))
    : sent;
};

/** The answer's JSON, or undefined where it has none that can be read. */
export const json = async (response) =>
  /json/.test(response.headers.get("content-type")) ? response.json().catch(() => {}) : undefined;

export const requestId = (response) => response.headers.get("X-Request-Id") ?? undefined;

/** The address as this page means it. Throws a TypeError where it is none. */
const resolve = (address) => new URL(address?.url ?? address ?? location, document.baseURI);

/** Also says no to an address that only borrows the page's origin, such as blob:. */
const isOwn = (url) => url.origin === location.origin && url.protocol === location.protocol;

/** Whether the body is a stream, which can be sent only once. */
const streams = (input, init) =>
  init?.body instanceof ReadableStream ||
  (input instanceof Request &&
    // Where an engine does not show a request's body, its method tells.
    (input.body === undefined ? !/^(GET|HEAD)$/.test(input.method) : !!input.body));

/**
 * The call's request, read once: what is checked is what is sent. Throws a TypeError where it must
 * not be sent, or where fetch itself would reject with one.
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

/** The same request once more, with its body. */
export const copy = (request) => request.clone();

export const send = (request, token) => {
  request.headers.set("Authorization", "Bearer " + token);
  return nativeFetch(request);
};

/** The promise, or the reason of the abort if that comes first. */
export const abortable = (promise, { signal }) =>
  new Promise((fulfil, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    promise.then(fulfil, reject).then(() => signal.removeEventListener("abort", abort));
  });

export const leave = (url) => location.assign(url);
