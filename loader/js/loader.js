// The loader: starts the module and defines `platform` on the page. It is built into one function
// together with page.js, whose names it uses. The function's
// arguments are PAYLOAD (the module as a string of ASCII), MASK (undoes the masking of its bytes)
// and SETTINGS (what the server wrote into the file).

/** @type {any} The class of another runtime.js, on which it stores whether it has warned. */
const before = globalThis.platform?.PlatformError;
const isFramed = parent !== window;
const isPreview = isFramed && /\bdev-/.test(location.hostname);

/** How many calls wait for the module at most. */
const WAITING = 100;
/**
 * What waits for the module, in order; undefined once the module has started or failed.
 *
 * @type {(() => void)[] | undefined}
 */
let waiting = [];
/**
 * Why the module cannot start.
 *
 * @type {InstanceType<typeof PlatformError> | undefined}
 */
let failure;

/**
 * Calls when the module has started or failed. A game that logs much before that gets the module at
 * once, so that not much is kept.
 *
 * @param {() => void} call
 */
const started = (call) => {
  if (!waiting) call();
  else if (waiting.push(call) === WAITING) startNow();
};

/**
 * Calls the module, once it has started.
 *
 * @template T
 * @param {() => Promise<T>} call
 * @returns {Promise<T>}
 */
const ask = (call) =>
  new Promise((fulfil, reject) => {
    started(() => (failure ? reject(failure) : fulfil(call())));
  });

const [authUrl, platformOrigin, heartbeatSeconds, trace] = SETTINGS;
/**
 * What the page that a game in a frame of another site opens must say to hand over its player.
 *
 * @type {string}
 */
let frameSecret;
/** @type {(path: string) => (redirect?: string | URL | null) => string} */
const way = (path) => (redirect) =>
  (isLocal() ? location.origin + LOGIN : authUrl + path) +
  "?redirect=" +
  encodeURIComponent(
    isEmbedded && path === "/login"
      ? authUrl + "/frame?to=" + encodeURIComponent(location.origin) + "&state=" + frameSecret
      : /** @type {any} */ (resolve(redirect)),
  );
const loginUrl = way("/login");

/** Listens to the page that a game in a frame of another site has opened, and takes its player. */
const watchTab = () => {
  frameSecret = random(32);
  addEventListener("message", ({ origin, data }) => {
    if (origin === authUrl && data?.state === frameSecret) {
      ask(async () => {
        await report(
          "/__platform/continue",
          JSON.stringify({ code: data.code, state: frameSecret }),
        );
        // After the end of a session there are no tokens until the page is loaded again.
        await getAccessToken(true).catch(() => location.reload());
      });
    }
  });
};

// The game may replace these before they are needed.
const { Module, Instance, compile } = globalThis.WebAssembly ?? {};

/**
 * Undoes the masking and the escaping of the module, in place.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
const unmask = (bytes) => {
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    let code = bytes[at];
    if (code > 125) code = (code - 126) * 65 + bytes[++at] + 91;
    bytes[length++] = code ^ MASK;
  }
  return bytes.subarray(0, length);
};

/** Calls everything that waits, in order. */
const release = () => {
  const calls = /** @type {(() => void)[]} */ (waiting);
  waiting = undefined;
  for (const call of calls) call();
};

/** @param {WebAssembly.Module} module */
const start = (module) => {
  useModule(new Instance(module, IMPORTS).exports);
  release();
  if (!isLocal()) observe(true);
};

/**
 * Starts the module synchronously, if it has not started: the page goes away, or logs much. Old
 * engines refuse that.
 */
const startNow = () => {
  try {
    if (waiting) start(new Module(unmask(encoder.encode(PAYLOAD))));
  } catch {
    // It starts in the background, or the page forbids it, which is said there.
  }
};

/**
 * Starts the module in the background: the game's first lines run meanwhile. Reading the text
 * as a response takes it out of the script's own task, without a timer, which hidden pages delay.
 *
 * @param {typeof console.error} nativeError
 */
const startLater = async (nativeError) => {
  try {
    const bytes = await new Response(PAYLOAD).arrayBuffer();
    const module = waiting && (await compile(unmask(new Uint8Array(bytes))));
    if (waiting) start(/** @type {WebAssembly.Module} */ (module));
  } catch (error) {
    nativeError(
      "platform cannot start: the page's Content-Security-Policy must allow 'wasm-unsafe-eval' in script-src",
      error,
    );
    failure = new PlatformError(
      0,
      "The game cannot connect to its platform in this browser.",
      "runtime-unavailable",
      "",
    );
    release();
  }
};

/**
 * Returns the player's token. The page's first request for one does not wait for the module, which
 * takes its response.
 *
 * @param {boolean} isForced
 * @returns {Promise<string>}
 */
const getToken = (isForced) => {
  if (waiting) {
    // As in the module: a forced caller gets no token that was requested before.
    if (isForced && hasMinted) {
      const again = () => ask(() => getAccessToken(true));
      return ask(() => getAccessToken(false)).then(again, again);
    }
    mintEarly();
  }
  return ask(() => getAccessToken(isForced));
};

if (before) {
  before.warned ||= !(
    /** @type {any} */ (
      console.warn("runtime.js is on this page twice: the second one does nothing")
    )
  );
} else {
  const nativeError = console.error.bind(console);
  connect(authUrl, platformOrigin, /^(localhost|[\d.]+|\[.*])$/.test(location.hostname));
  if (!isLocal()) {
    watchErrors();
    watchConsole();
  }
  if (isFramed) watchFocus();
  if (isEmbedded) watchTab();

  turn();
  watchPage();
  if (!isLocal()) watchPlayer(heartbeatSeconds * 1000);
  startLater(nativeError);

  if (!isLocal()) lookBack();

  globalThis.platform = Object.freeze(
    /** @satisfies {Platform} */ ({
      fetch: async (input, init) => {
        // Read at once, as by the browser's own: the game may change the arguments afterwards.
        const made = request(input, init);
        trace?.(made.headers);
        if (waiting && !made.signal.aborted) mintEarly();
        return ask(() => call(made));
      },
      getAccessToken: (options) => getToken(!!options?.forceRefresh),
      player: async () => {
        const { sub: id, username, is_anon: isGuest } = claims(await platform.getAccessToken());
        return Object.freeze({ id, username, isGuest });
      },
      loginUrl,
      profileUrl: way("/profile"),
      signOut: (redirect) => ask(() => signOut(redirect)),
      reportError: logError,
      PlatformError,
      version: VERSION,
    }),
  );

  if (isLocal()) (location.pathname === LOGIN ? drawPicker : drawBadge)();
}
