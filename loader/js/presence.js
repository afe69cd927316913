// What the page sees of its player and of its own coming and going. The rules
// are in the module; this only tells it.

let used = false;
let pads = 0;
/** @type {string} */
let page;

/** Names this page life: 128 random bits. */
const turn = () => {
  page = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))))
    .slice(0, 22)
    .replace(/\+/g, "-")
    .replace(/\//g, "_");
};

/**
 * Tells the game's address that this page is played, or left. Where the player may not play any
 * more (403), or signed out since the token was made (401), the token is dropped. Who plays now is
 * looked at at once; why nobody may, the auth service says when the next token is asked for.
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
        return status === 401 && wasm.getAccessToken(false);
      },
    )
    .catch(() => {});

/** A player with nothing but a gamepad makes no event, so the pads are asked. */
const padsMoved = () => {
  try {
    const last = pads;
    pads = navigator.getGamepads().reduce((sum, pad) => sum + (pad?.timestamp ?? 0), 0);
    return pads !== last;
  } catch {
    // A frame may be forbidden to ask.
  }
};

/**
 * Test programs do not count as players, but on a platform on this machine.
 *
 * @param {number} interval
 */
const watchPlayer = (interval) => {
  const counts = !navigator.webdriver || /(^|\.)localhost$/.test(platformUrl.hostname);
  for (const type of ["pointerdown", "pointermove", "keydown", "touchstart"]) {
    addEventListener(type, () => (used = true), { capture: true, passive: true });
  }
  /**
   * The first look asks no gamepads: that alone takes some milliseconds.
   *
   * @param {boolean} [first]
   */
  const look = (first) => {
    const visible = counts && !document.hidden;
    if (wasm.look(visible, (visible && !first && padsMoved()) || used, interval)) {
      // Without a token there is nobody to count.
      wasm.getAccessToken(false).then(beat, () => {});
    }
    used = false;
    sendLog();
  };
  setInterval(() => look(), 1000);
  look(true);
};

/** Another tab of this game has signed the player out. */
const signedOut = () => {
  wasm.wake(true);
  become();
};

/**
 * Whoever comes back may have signed in or out elsewhere. In a frame of another site, whose cookies
 * a browser may forbid, every look would make another guest.
 */
const comeBack = () => wasm.wake(false, !isFramed);

/** Pages go into the back/forward cache only if they listen to these alone. */
const watchPage = () => {
  if (!isLocal()) listen(signedOut);
  addEventListener("online", comeBack);
  addEventListener("focus", comeBack);
  addEventListener("pageshow", ({ persisted }) => {
    wasm.wake(persisted);
    if (!persisted) return;
    turn();
    if (isLocal()) return;
    listen(signedOut);
    if (known) wasm.getAccessToken(false).catch(() => {});
  });
  document.addEventListener("visibilitychange", () =>
    document.hidden ? sendLog(true) : comeBack(),
  );
  addEventListener("pagehide", () => {
    stopListening();
    if (wasm.goAway()) beat(wasm.heldToken(), true);
    sendLog(true);
  });
};

/**
 * Gives a frame the keyboard on a click. Many engines cancel the event that would do so. An
 * element that is being typed in keeps it.
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
