// Local development: shows the current test player, and the page to choose another.

const LOGIN = "/__platform/login";
/** @param {string} player */
const nameOf = (player) => "test-" + player.replace("/", "-");

/** Draws a badge in the corner, where no style of the game applies to it. */
const drawBadge = () => {
  const host = document.createElement("platform-dev");
  const badge = host.attachShadow({ mode: "open" });
  badge.innerHTML = `<style>a{position:fixed;right:8px;bottom:8px;z-index:2147483647;max-width:70vw;padding:4px 8px;border-radius:6px;background:#222d;color:#fff;font:12px/1.4 system-ui;text-decoration:none}b{color:#fd4}</style><a title="Play as another test player"><b>DEV</b> <span></span></a>`;
  const link = /** @type {HTMLAnchorElement} */ (badge.querySelector("a"));
  /**
   * Reuses the same link element, because it may have the keyboard focus.
   *
   * @param {Error} [error]
   */
  const show = (error) => {
    link.href = loginUrl();
    /** @type {ChildNode} */ (link.lastChild).textContent =
      nameOf(player()) + (error ? " – " + error.message : "");
  };
  show();
  follow(show);
  document.documentElement.append(host);
};

const PICKER = `<meta name=viewport content="width=device-width"><style>
:root{color-scheme:light dark;font:16px/1.5 system-ui}
body{max-width:40rem;margin:0 auto;padding:2rem 1rem}
h1{font-size:1.5rem;margin:0}p{margin:.25rem 0 1.5rem;opacity:.75}
input,button{font:inherit;color:inherit;border:1px solid light-dark(#ccc,#444);border-radius:8px;background:light-dark(#f6f6f6,#222);padding:.6rem .8rem;width:100%;box-sizing:border-box}
section{display:grid;grid-template-columns:1fr 1fr;gap:.5rem;margin-top:1rem}
button{text-align:left;cursor:pointer}button:hover{border-color:#4a8cff}
[data-enter]::after{content:" ↵"}
[aria-current]{background:#2563eb;border-color:#2563eb;color:#fff}
[role=alert]{color:light-dark(#b42318,#ff8f85);min-height:1.5em}
</style><main><h1>Who do you play as?</h1><p>Each tab can be another player.</p><input type=search placeholder="Number or name" aria-label="Find a test player"><div role=alert></div><section></section></main>`;

/** Draws the page to choose a test player. */
const drawPicker = () => {
  document.title = "Choose a test player";
  document.documentElement.lang = "en";
  document.body.innerHTML = PICKER;
  const [search, alert, list] =
    /** @type {NodeListOf<HTMLElement> & [HTMLInputElement, HTMLElement, HTMLElement]} */ (
      document.body.querySelectorAll("input,[role=alert],section")
    );
  // At once: WebKit applies `autofocus` only when it draws, and keys may be pressed before.
  search.focus();
  /** @type {string | URL} */
  let wanted = "/";
  try {
    const back = resolve(new URLSearchParams(location.search).get("redirect") || "/");
    if (isOwn(back)) wanted = back;
  } catch {
    // The parameter is not a valid address.
  }
  /** @param {string} chosen */
  const choose = async (chosen) => {
    const before = player();
    play(chosen);
    alert.textContent = "";
    try {
      await platform.getAccessToken({ forceRefresh: true });
      location.assign(wanted);
    } catch (error) {
      play(before);
      alert.textContent = /** @type {Error} */ (error).message;
    }
  };
  for (let number = 1; number <= 10; number++) {
    for (const kind of ["user/", "guest/"]) {
      const button = document.createElement("button");
      button.textContent = nameOf(kind + number);
      if (kind + number === player()) button.ariaCurrent = "true";
      button.onclick = () => choose(kind + number);
      list.append(button);
    }
  }
  search.oninput = () => {
    const text = search.value.trim().toLowerCase();
    // With an empty search Enter takes nobody: the key that led here may still be held down.
    let takes = text != "";
    for (const button of /** @type {Iterable<HTMLElement>} */ (list.children)) {
      button.hidden = /^\d+$/.test(text)
        ? !button.textContent.endsWith("-" + text)
        : !button.textContent.includes(text);
      button.toggleAttribute("data-enter", takes && !button.hidden);
      takes &&= button.hidden;
    }
  };
  search.onkeydown = (event) => {
    if (event.key == "Enter")
      /** @type {HTMLElement | null} */ (list.querySelector("[data-enter]"))?.click();
  };
};
