// The panes of the Build page: the dev environment side by side, each pane with another player, an
// address and so a storage of its own, and a condition that is hard to meet otherwise.

import { allById, byId, make, pageData } from "./dom.js";
import { names } from "./entry.js";
import { close } from "./gate.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Session } from "./session.js" */

/** How many test users there are, and how many test guests. */
const PLAYERS = 10;
/** Milliseconds between two renewals of a pane's session, which lasts for half an hour. */
const RENEWAL = 10 * 60 * 1000;
/** The viewer, who plays at the dev address itself, in the first pane only. */
const VIEWER = "you";
/** Who plays in each pane at first. */
const FIRST = [VIEWER, "user/2", "user/3", "guest/4"];
/** @type {Record<Schemas["Condition"], string>} */
const CONDITIONS = {
  none: "As usual",
  "token-expired": "Token expired",
  "session-expired": "Session expired",
  "backend-unauthorized": "401 from the backend",
  "account-suspended": "Suspended",
  "guest-limit-reached": "Guest limit reached",
  offline: "Offline",
  slow: "Slow",
  "wrong-clock": "Wrong clock",
};
/** Conditions of the network. The others show when a page asks for its first token. */
const AT_ONCE = ["none", "backend-unauthorized", "offline", "slow"];
/** What the game may do in its frame: the same as in a tab, except navigating this page. */
const SANDBOX = [
  "scripts",
  "same-origin",
  "forms",
  "modals",
  "orientation-lock",
  "pointer-lock",
  "popups",
  "popups-to-escape-sandbox",
  "presentation",
  "downloads",
].map((what) => `allow-${what}`);
const ALLOWED = "autoplay; fullscreen; gamepad; clipboard-write; screen-wake-lock";

/**
 * Returns how a player is called: `user/3` is `test-user-3`.
 *
 * @param {string} player
 */
const nameOf = (player) => (player === VIEWER ? "You" : `test-${player.replace("/", "-")}`);

/**
 * @param {string} label
 * @param {string} kind
 */
const group = (label, kind) => {
  const options = Array.from({ length: PLAYERS }, (_, at) => {
    const value = `${kind}/${at + 1}`;
    return make("option", { value, textContent: nameOf(value) });
  });
  return make("optgroup", { label }, ...options);
};

/**
 * @param {string} words
 * @param {Node} field
 */
const labelled = (words, field) => {
  const label = make("label");
  label.append(make("span", { className: "aside", textContent: words }), field);
  return label;
};

/** One pane. */
class Pane {
  /** Where the game is: the pane's address, or the dev address. */
  #address = "";
  /** Begins sessions one after the other, so that the last one counts. */
  #turn = Promise.resolve();
  #player;
  #condition = /** @type {Schemas["Condition"]} */ ("none");
  #session;

  /**
   * @param {number} number
   * @param {Session} session
   */
  constructor(number, session) {
    this.number = number;
    this.#session = session;
    this.#player = FIRST[number - 1];
    const groups = [group("Test users", "user"), group("Test guests", "guest")];
    const viewer = make("option", { value: VIEWER, textContent: "You" });
    this.who = document.createElement("select");
    this.who.append(...(number === 1 ? [viewer] : []), ...groups);
    const conditions = Object.entries(CONDITIONS);
    const options = conditions.map(([value, textContent]) =>
      make("option", { value, textContent }),
    );
    this.condition = document.createElement("select");
    this.condition.append(...options);
    const again = make("button", { className: "button second small-button", type: "button" });
    again.append("Reload", make("span", { className: "aside", textContent: ` pane ${number}` }));
    this.problem = make("p", { className: "message problem", hidden: true });
    const dot = make("span", { className: "dot", textContent: String(number) });
    dot.ariaHidden = "true";
    const bar = make("div", { className: "pane-bar" });
    bar.append(
      dot,
      labelled(`Player in pane ${number}`, this.who),
      labelled(`Condition in pane ${number}`, this.condition),
      again,
    );
    this.element = make("section", { className: `pane pane-${number}` }, bar, this.problem);
    this.element.ariaLabel = `Pane ${number}`;
    again.onclick = () => this.restart();
    this.condition.onchange = () => this.#change();
    this.#tell();
  }

  get player() {
    return this.#player;
  }

  /** The name of the player, as the log shows it. */
  get name() {
    return nameOf(this.#player);
  }

  /** @param {string} player */
  play(player) {
    this.#player = player;
    this.#tell();
  }

  #tell() {
    const isViewer = this.#player === VIEWER;
    this.who.value = this.#player;
    this.condition.disabled = isViewer;
    this.condition.title = isViewer ? "Choose a test player for a condition." : "";
    if (isViewer) this.condition.value = this.#condition = "none";
  }

  #change() {
    const before = this.#condition;
    this.#condition = /** @type {Schemas["Condition"]} */ (this.condition.value);
    const isSeen = AT_ONCE.includes(before) && AT_ONCE.includes(this.#condition);
    if (isSeen) this.begin();
    else this.restart();
  }

  /**
   * Begins or renews the session, so that the player and the condition are those that were chosen.
   * Returns whether it did.
   */
  async begin() {
    const turn = this.#turn.then(() => this.#begin());
    this.#turn = turn.catch(() => {});
    try {
      await turn;
      this.problem.hidden = true;
      return true;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (refusal.status === 401) close(refusal);
      this.problem.hidden = false;
      this.problem.textContent = refusal.message;
      return false;
    }
  }

  async #begin() {
    const player = this.#player;
    if (player === VIEWER) {
      this.#address = pageData("game");
      return;
    }
    const [kind, number] = player.split("/");
    const { origin, session, sub, username } = await this.#session.ask(
      `/api/projects/${pageData("slug")}/panes`,
      {
        pane: this.number,
        number: Number(number),
        guest: kind === "guest",
        condition: this.#condition,
      },
    );
    names.set(sub, username);
    let response;
    try {
      const entrance = `${origin}/__platform/pane`;
      response = await fetch(entrance, { method: "POST", credentials: "include", body: session });
    } catch {
      throw new Refusal(0);
    }
    if (!response.ok) throw new Refusal(response.status);
    this.#address = `${origin}/`;
  }

  /** Loads the game. A new element, unlike a new address, adds nothing to the tab's history. */
  load() {
    const frame = make("iframe", {
      className: "game-frame",
      title: `${pageData("slug")} in pane ${this.number}`,
      allow: ALLOWED,
      src: this.#address,
    });
    frame.sandbox.add(...SANDBOX);
    this.unload();
    this.element.append(frame);
  }

  unload() {
    this.element.querySelector("iframe")?.remove();
  }

  async restart() {
    if (await this.begin()) this.load();
  }
}

/** The panes beside each other. */
export class Panes {
  #panes;
  #count = 1;
  /** Whether there is a deployment to show. */
  #isShown = false;
  #renewed = performance.now();

  /** @param {Session} session */
  constructor(session) {
    this.#panes = FIRST.map((_, at) => new Pane(at + 1, session));
    for (const pane of this.#panes) pane.who.onchange = () => this.#choose(pane, pane.who.value);
    const stage = byId("stage");
    stage.append(this.#panes[0].element);
    for (const button of allById("panes-1", "panes-2", "panes-4"))
      button.onclick = () => this.#show(Number(button.value));
    for (const button of allById("pane-1", "pane-2", "pane-3", "pane-4"))
      button.onclick = () => this.#turnTo(Number(button.value));
    setInterval(() => this.#renew(), RENEWAL);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#renew();
    });
  }

  /** The panes that are shown. */
  get #shown() {
    return this.#panes.slice(0, this.#count);
  }

  /**
   * Returns the pane in which a player plays, if there are several panes.
   *
   * @param {string | null} player an id
   * @param {string} self the viewer's id
   */
  find(player, self) {
    if (!player || this.#count === 1) return undefined;
    const name = player === self ? "You" : names.get(player);
    return this.#shown.find((pane) => pane.name === name);
  }

  /** Loads the game in all panes, at the same moment. */
  async start() {
    this.#isShown = true;
    const shown = this.#shown;
    const begun = await Promise.all(shown.map((pane) => pane.begin()));
    for (const [at, pane] of shown.entries()) if (begun[at]) pane.load();
  }

  /** @param {number} count */
  #show(count) {
    this.#count = count;
    for (const button of allById("panes-1", "panes-2", "panes-4"))
      button.ariaPressed = String(Number(button.value) === count);
    for (const button of allById("pane-1", "pane-2", "pane-3", "pane-4"))
      button.hidden = Number(button.value) > count;
    const stage = byId("stage");
    byId("pane-switch").hidden = count === 1;
    stage.dataset.count = String(count);
    for (const pane of this.#panes) {
      if (pane.number > count) {
        pane.unload();
        pane.element.remove();
      } else if (!pane.element.isConnected) stage.append(pane.element);
    }
    this.#turnTo(1);
    // A frame that is moved would load again, and those that stay go on.
    const started = this.#shown.filter(({ element }) => !element.querySelector("iframe"));
    if (this.#isShown) for (const pane of started) pane.restart();
  }

  /**
   * Shows one of the panes on a phone.
   *
   * @param {number} number
   */
  #turnTo(number) {
    for (const button of allById("pane-1", "pane-2", "pane-3", "pane-4"))
      button.ariaPressed = String(Number(button.value) === number);
    byId("stage").dataset.turned = String(number);
  }

  /**
   * Lets a player play in a pane. Who played there changes places with them.
   *
   * @param {Pane} pane
   * @param {string} player
   */
  #choose(pane, player) {
    const former = pane.player;
    const other = this.#panes.find((one) => one !== pane && one.player === player);
    pane.play(player);
    if (other) {
      other.play(former === VIEWER ? this.#free() : former);
      if (this.#shown.includes(other)) other.restart();
    }
    pane.restart();
  }

  /** Returns a test user who plays nowhere. */
  #free() {
    const taken = this.#panes.map(({ player }) => player);
    const users = Array.from({ length: PLAYERS }, (_, at) => `user/${at + 1}`);
    return users.find((user) => !taken.includes(user)) ?? FIRST[1];
  }

  #renew() {
    const now = performance.now();
    if (!this.#isShown || document.hidden || now - this.#renewed < RENEWAL / 2) return;
    this.#renewed = now;
    for (const pane of this.#shown) pane.begin();
  }
}
