// The page that a game in a frame of another site opened in a tab: hands the player back to the
// frame, which alone can use the code, and closes the tab.

const { to, code, state } = /** @type {HTMLScriptElement} */ (document.currentScript).dataset;

if (opener && to) {
  opener.postMessage({ type: "platform:continue", code, state }, to);
  close();
}
