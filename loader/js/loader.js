// The loader: starts the module and puts `platform` on the page. It stands in
// one function with page.js and with the glue that wasm-bindgen makes, whose
// names it uses. The function is called with PAYLOAD, the module as a string
// of code points 0 to 255, MASK, which undoes their masking, and SETTINGS, what
// the server wrote into the file.

const before = globalThis.platform?.PlatformError;

if (before) {
  before.warned ||= !console.warn("runtime.js is on this page twice: the second one does nothing");
} else {
  const [authUrl, platformOrigin] = SETTINGS;
  let starting;

  const start = (module) => {
    __wbg_set_wasm(new WebAssembly.Instance(module, IMPORTS).exports);
    connect(wasm.settle, authUrl, platformOrigin);
    wasm.__wbindgen_start();
    onWake(wasm.wake);
  };

  const bytes = Uint8Array.from(PAYLOAD, (character) => character.charCodeAt() ^ MASK);
  try {
    start(new WebAssembly.Module(bytes));
  } catch {
    // Either the engine compiles small modules only on the page's thread, or
    // the page forbids WebAssembly. Asking again tells which.
    starting = (async () => {
      try {
        start(await WebAssembly.compile(bytes));
      } catch (error) {
        console.error(
          "platform cannot start: the page's Content-Security-Policy must allow 'wasm-unsafe-eval' in script-src",
          error,
        );
        throw new PlatformError(0, "The game cannot connect to its platform in this browser.", "runtime-unavailable", "");
      }
    })();
    // Who calls a function is told. Nobody else has to handle it.
    starting.catch(() => {});
  }

  const started = (call) => (starting ? starting.then(call) : call());
  const page = (path) => (redirect) => authUrl + path + "?redirect=" + encodeURIComponent(resolve(redirect));

  globalThis.platform = Object.freeze({
    fetch: (input, init) => started(() => wasm.call(input, init)),
    getAccessToken: (options) => started(() => wasm.getAccessToken(!!options?.forceRefresh)),
    loginUrl: page("/login"),
    profileUrl: page("/profile"),
    signOut: (redirect) => started(() => wasm.signOut(redirect)),
    PlatformError,
    version: VERSION,
  });
}
