// The loader: starts the module and defines `platform` on the page. It is built into one function
// together with page.js and the glue from wasm-bindgen, whose names it uses. The function's
// arguments are PAYLOAD (the module as a string of ASCII), MASK (undoes the masking of its bytes)
// and SETTINGS (what the server wrote into the file).

/** @type {any} The class of another runtime.js, on which it stores whether it has warned. */
const before = globalThis.platform?.PlatformError;
/** @type {Promise<void> | undefined} */
let starting;
const isFramed = parent !== window;
const isPreview = isFramed && /\bdev-/.test(location.hostname);
/**
 * Calls when the module has started.
 *
 * @template T
 * @param {() => T} call
 * @param {() => void} [otherwise]
 * @returns {T}
 */
const started = (call, otherwise) =>
  starting ? /** @type {any} */ (starting.then(call, otherwise)) : call();

const [authUrl, platformOrigin, heartbeatSeconds] = SETTINGS;
/** @type {(path: string) => (redirect?: string | URL | null) => string} */
const way = (path) => (redirect) =>
  (isLocal() ? location.origin + LOGIN : authUrl + path) +
  "?redirect=" +
  encodeURIComponent(/** @type {any} */ (resolve(redirect)));
const loginUrl = way("/login");

/** @param {WebAssembly.Module} module */
const start = (module) => {
  __wbg_set_wasm(new WebAssembly.Instance(module, IMPORTS).exports);
  wasm.__wbindgen_start();
  turn();
  watchPage();
  if (!isLocal()) watchPlayer(heartbeatSeconds * 1000);
};

/**
 * Compiles the module asynchronously: either the engine compiles only small modules synchronously,
 * or the page forbids WebAssembly.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {typeof console.error} nativeError
 */
const startLater = async (bytes, nativeError) => {
  try {
    start(await WebAssembly.compile(bytes));
    starting = undefined;
  } catch (error) {
    nativeError(
      "platform cannot start: the page's Content-Security-Policy must allow 'wasm-unsafe-eval' in script-src",
      error,
    );
    throw new PlatformError(
      0,
      "The game cannot connect to its platform in this browser.",
      "runtime-unavailable",
      "",
    );
  }
};

if (before) {
  before.warned ||= !(
    /** @type {any} */ (
      console.warn("runtime.js is on this page twice: the second one does nothing")
    )
  );
} else {
  const nativeError = console.error.bind(console);
  connect(
    (...outcome) => wasm.settle(...outcome),
    authUrl,
    platformOrigin,
    /^(localhost|[\d.]+|\[.*])$/.test(location.hostname),
  );
  if (!isLocal()) {
    watchErrors();
    watchConsole();
  }
  if (isFramed) watchFocus();

  let bytes = new Uint8Array(PAYLOAD.length);
  let length = 0;
  for (let at = 0; at < PAYLOAD.length; at++) {
    let code = PAYLOAD.charCodeAt(at);
    if (code > 125) code = (code - 126) * 65 + PAYLOAD.charCodeAt(++at) + 91;
    bytes[length++] = code ^ MASK;
  }
  bytes = bytes.subarray(0, length);
  try {
    start(new WebAssembly.Module(bytes));
  } catch {
    starting = startLater(bytes, nativeError);
    // The caller of a function gets the error. Others need not handle it.
    starting.catch(() => {});
  }

  if (!isLocal()) lookBack();

  globalThis.platform = Object.freeze(
    /** @satisfies {Platform} */ ({
      fetch: (input, init) => started(() => wasm.call(input, init)),
      getAccessToken: (options) => started(() => wasm.getAccessToken(!!options?.forceRefresh)),
      player: async () => {
        const { sub: id, username, is_anon: isGuest } = claims(await platform.getAccessToken());
        return Object.freeze({ id, username, isGuest });
      },
      loginUrl,
      profileUrl: way("/profile"),
      signOut: (redirect) => started(() => wasm.signOut(redirect)),
      reportError: logError,
      PlatformError,
      version: VERSION,
    }),
  );

  if (isLocal()) (location.pathname === LOGIN ? drawPicker : drawBadge)();
}
