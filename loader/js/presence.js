// What the page observes of its player and of its own visibility. The rules are in the module.

let used = false;
let pads = 0;
/** @type {string} */
let page;

/**
 * Returns random bytes as base64url.
 *
 * @param {number} bytes
 */
const random = (bytes) =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(bytes))))
    .replace(/=/g, "")
    .replace(/\+/g, "-")
    .replace(/\//g, "_");

/** Sets a new id for the page until it is left: 128 random bits. */
const turn = () => {
  page = random(16);
};

/**
 * Reports to the game's address that this page is played, or left. The token is dropped if the
 * player may no longer play (403) or signed out after it was issued (401); then the page checks at
 * once who plays now. The next request for a token explains why a player may not play.
 *
 * @param {string | undefined} token
 * @param {boolean} [leaving]
 * @returns {Promise<unknown>}
 */
const beat = (token, leaving) =>
  report("/__platform/heartbeat", JSON.stringify({ page, leaving }), token, leaving)
    .then(
      /** @type {(response: Response) => unknown} */ ({ status }) => {
        if (status === 401 || status === 403) wasm.wake(true);
        return status === 401 && getAccessToken(false);
      },
    )
    .catch(() => {});

/**
 * Returns whether a gamepad was used. A player who uses only a gamepad causes no events, so the
 * gamepads are polled.
 */
const padsMoved = () => {
  try {
    const last = pads;
    pads = navigator.getGamepads().reduce((sum, pad) => sum + (pad?.timestamp ?? 0), 0);
    return pads !== last;
  } catch {
    // A frame may not be allowed to read them.
  }
};

/**
 * Looks whether the page is played. The first look does not poll gamepads, because that takes some
 * milliseconds.
 *
 * @type {(isFirst: boolean) => void}
 */
let observe;

/**
 * Observes whether the player uses the page. Test programs do not count as players, except on a
 * platform on this machine.
 *
 * @param {number} interval
 */
const watchPlayer = (interval) => {
  const counts = !navigator.webdriver || /(^|\.)localhost$/.test(platformUrl.hostname);
  for (const type of ["pointerdown", "pointermove", "keydown", "touchstart"]) {
    addEventListener(type, () => (used = true), { capture: true, passive: true });
  }
  observe = (isFirst) => {
    // The module may not have started, or may never start.
    if (!wasm) return;
    const visible = counts && !document.hidden;
    if (wasm.look(visible, (visible && !isFirst && padsMoved()) || used, interval)) {
      // Without a token there is no player to count.
      tokenToPlay().then(beat, () => {});
    }
    used = false;
    sendLog();
  };
  setInterval(() => observe(false), 1000);
};

/** Handles that another tab of this game has signed the player out. */
const signedOut = () => {
  wasm?.wake(true);
  become();
};

/**
 * Handles that the player comes back, and may have signed in or out elsewhere. A frame is an
 * exception: there a browser may block cookies, and every check would create another guest.
 */
const comeBack = () => wasm?.wake(false, !isFramed);

/**
 * Uses only these events: listening to others can keep a page out of the back/forward cache.
 * They may come before the module has started; a page that goes away starts it at once, so that
 * nothing is lost.
 */
const watchPage = () => {
  if (!isLocal()) listen(signedOut);
  addEventListener("online", comeBack);
  addEventListener("focus", comeBack);
  addEventListener("pageshow", ({ persisted }) => {
    wasm?.wake(persisted);
    if (!persisted) return;
    turn();
    if (isLocal()) return;
    listen(signedOut);
    if (known) getAccessToken(false).catch(() => {});
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      startNow();
      sendLog(true);
    } else comeBack();
  });
  addEventListener("pagehide", () => {
    stopListening();
    startNow();
    if (wasm?.goAway()) beat(heldToken(), true);
    sendLog(true);
  });
};

/**
 * Gives a frame the keyboard focus on a click. Many engines cancel the event that would do so. A
 * focused text field keeps it.
 */
const watchFocus = () => {
  const focus = () => {
    const active = /** @type {HTMLElement | null} */ (document.activeElement);
    if (
      !active?.isContentEditable &&
      !/^(input|textarea|select)$/.test(/** @type {string} */ (active?.localName))
    ) {
      window.focus();
    }
  };
  for (const type of ["pointerdown", "mousedown"]) addEventListener(type, focus, true);
};
