// `/projects/<slug>` and the addresses below it: what every tab of a project has in common. It
// knows the environment and the period that the viewer has chosen, keeps the project up to date,
// and tells the parts of the tab. `openTab` is what a tab's own script calls.

import { byId, pageData } from "./dom.js";
import { close, enter, isFinal } from "./gate.js";
import { Refusal } from "./session.js";
import { drawStanding } from "./standing.js";

/** @import { Player, Schemas } from "../types/api.d.ts" */
/** @import { Session } from "./session.js" */

/** @typedef {Schemas["EnvironmentName"]} EnvironmentName */

/**
 * A part of a tab. `open` shows an environment: the first one, or another one that was chosen.
 * `look` asks for what changes by itself or belongs to the period: after `open`, when another period
 * is chosen, and every few seconds; more often if the part is `eager`. `draw` shows the project as it is
 * now, without a request.
 *
 * @typedef {object} Part
 * @property {() => unknown} [open]
 * @property {() => Promise<unknown>} [look]
 * @property {boolean} [eager]
 * @property {() => void} [draw]
 */

/** Milliseconds between two requests for the project. */
const LOOK = 5000;
/** Every how many of them the parts ask for what changes by itself. */
const EVERY = 3;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** @typedef {"hour" | "day" | "week" | "quarter"} Period */

/**
 * The periods that a viewer chooses among: the length and the name.
 *
 * @type {Record<Period, { length: number, words: string }>}
 */
export const PERIODS = {
  hour: { length: HOUR, words: "the last hour" },
  day: { length: DAY, words: "the last 24 hours" },
  week: { length: 7 * DAY, words: "the last 7 days" },
  quarter: { length: 90 * DAY, words: "the last 90 days" },
};

/**
 * Returns the radio buttons of a choice. Not every tab has a choice of the period.
 *
 * @param {"env" | "period"} name
 * @returns {NodeListOf<HTMLInputElement>}
 */
const choices = (name) => document.querySelectorAll(`input[name="${name}"]`);

/** @param {"env" | "period"} name */
const chosen = (name) => [...choices(name)].find(({ checked }) => checked)?.value;

/**
 * Waits for the next round. Resolves early, with true, when somebody comes back to the page: what
 * changed meanwhile should not look as before.
 *
 * @returns {Promise<boolean>}
 */
const nextRound = () =>
  new Promise((resolve) => {
    /** @param {boolean} isBack */
    const end = (isBack) => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
      resolve(isBack);
    };
    const seen = () => document.hidden || end(true);
    const timer = setTimeout(end, LOOK, false);
    document.addEventListener("visibilitychange", seen);
  });

/** @param {string | null} name */
const isPeriod = (name) => name !== null && Object.hasOwn(PERIODS, name);

/**
 * Writes a choice into the page's address, and into those of the other tabs.
 *
 * @param {string} name
 * @param {string} value
 */
const keep = (name, value) => {
  const query = new URLSearchParams(location.search);
  query.set(name, value);
  history.replaceState(null, "", `?${query}`);
  leadOn();
};

/** Lets the links to the other tabs keep what was chosen. */
const leadOn = () => {
  const here = new URLSearchParams(location.search);
  const kept = new URLSearchParams(
    [...here].filter(([name]) => name === "env" || name === "period"),
  );
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = document.querySelectorAll("#tabs a, .to-tab");
  for (const link of links) link.href = link.pathname + (kept.size ? `?${kept}` : "");
};

/** A project on the page, for a viewer who may see it. */
export class Desk {
  /** @type {Part[]} */
  #parts = [];
  #turn = 0;

  /**
   * @param {Session} session
   * @param {Player} player
   * @param {Schemas["Project"]} project
   * @param {EnvironmentName} environment
   */
  constructor(session, player, project, environment) {
    this.session = session;
    this.player = player;
    this.slug = project.slug;
    this.project = project;
    /**
     * The environment that the page shows. While another one is loading, the radio button is ahead
     * of it.
     */
    this.environment = environment;
    for (const input of choices("env")) input.onchange = () => this.#switch();
    for (const input of choices("period"))
      input.onchange = () => {
        keep("period", input.value);
        this.#guard(() => this.#look());
      };
  }

  /** The state of the environment that the page shows. */
  get now() {
    return this.project.environments[this.environment];
  }

  /**
   * The path of the environment in the project API.
   *
   * @returns {`/api/projects/${string}/environments/${string}`}
   */
  get path() {
    return `/api/projects/${this.slug}/environments/${this.environment}`;
  }

  /** The period that the viewer has chosen: a day on tabs without this choice. */
  get period() {
    return /** @type {Period} */ (chosen("period") ?? "day");
  }

  /** Whether the viewer owns the project. */
  get isOwn() {
    return this.project.role === "owner";
  }

  /**
   * Returns the part of a query that names the environment and the period.
   *
   * @param {Period} [period]
   */
  query(period = this.period) {
    const to = new Date();
    return {
      env: this.environment,
      from: new Date(to.getTime() - PERIODS[period].length).toISOString(),
      to: to.toISOString(),
    };
  }

  /**
   * Returns a function that says whether the page still shows the environment and the period of
   * now. An answer that comes too late is not shown.
   */
  mark() {
    const { environment, period } = this;
    return () => environment === this.environment && period === this.period;
  }

  /**
   * Takes over the changed state of an environment, which may not be the shown one any more.
   *
   * @param {EnvironmentName} environment
   * @param {Schemas["Environment"]} now
   */
  takes(environment, now) {
    const environments = { ...this.project.environments, [environment]: now };
    this.takesProject({ ...this.project, environments });
  }

  /** @param {Schemas["Project"]} project */
  takesProject(project) {
    this.project = project;
    this.#draw();
  }

  /**
   * Shows these parts from now on.
   *
   * @param {Part[]} parts
   */
  async show(parts) {
    this.#parts = parts;
    await this.#open();
  }

  async #open() {
    this.#draw();
    const opened = this.#parts.map((part) => part.open?.());
    await Promise.all([this.#look(), ...opened]);
  }

  async #look(parts = this.#parts) {
    await Promise.all(parts.map((part) => part.look?.()));
  }

  #draw() {
    const { url } = this.now;
    drawStanding(this.project);
    byId("as-viewer").hidden = this.project.role !== "viewer";
    const address = byId("address");
    address.href = url;
    address.textContent = url.replace(/^https?:\/\//, "");
    for (const part of this.#parts) part.draw?.();
  }

  async #switch() {
    const environment = /** @type {EnvironmentName} */ (chosen("env"));
    const turn = ++this.#turn;
    // The forms still have the values of the other environment, which must not be saved here.
    this.#rest(true);
    await this.#guard(async () => {
      let opened;
      try {
        const now = await this.session.ask(
          /** @type {const} */ (`/api/projects/${this.slug}/environments/${environment}`),
        );
        if (turn !== this.#turn) return;
        const environments = { ...this.project.environments, [environment]: now };
        this.project = { ...this.project, environments };
        this.environment = environment;
        opened = this.#open();
        keep("env", environment);
      } finally {
        if (turn === this.#turn) {
          byId(`env-${this.environment}`).checked = true;
          this.#rest(false);
        }
      }
      await opened;
    });
  }

  /** @param {boolean} isResting */
  #rest(isResting) {
    /** @type {NodeListOf<HTMLElement>} */
    const sections = document.querySelectorAll("#inside > section");
    for (const section of sections) section.inert = isResting;
  }

  /** @param {() => Promise<void>} work */
  async #guard(work) {
    const turn = this.#turn;
    try {
      await work();
      if (turn === this.#turn) byId("trouble").hidden = true;
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (isFinal(refusal)) return close(refusal);
      if (turn !== this.#turn) return;
      byId("trouble").hidden = false;
      byId("trouble").textContent = refusal.message;
    }
  }

  /** Asks regularly while the page is visible, and as soon as it is visible again. */
  async watch() {
    for (let round = 1; ; round++) {
      const isBack = await nextRound();
      if (document.hidden || byId("inside").hidden) continue;
      await this.#guard(async () => {
        const before = this.now.deployment?.id;
        this.takesProject(await this.session.ask(`/api/projects/${this.slug}`));
        const isNew = isBack || before !== this.now.deployment?.id;
        const parts = this.#parts.filter(({ eager }) => eager || isNew || round % EVERY === 0);
        await this.#look(parts);
      });
    }
  }
}

/**
 * Opens a tab that consists of these parts, for a viewer who may see the project.
 *
 * @param {...(desk: Desk) => Part} makers
 */
export const openTab = (...makers) =>
  enter(async (session, player) => {
    const project = await session.ask(`/api/projects/${pageData("slug")}`);
    const { dev, prod } = project.environments;
    const wanted = new URLSearchParams(location.search);
    const env = wanted.get("env");
    const fallback = prod.deployment || !dev.deployment ? "prod" : "dev";
    const environment = env === "dev" || env === "prod" ? env : fallback;
    byId(`env-${environment}`).checked = true;
    const period = wanted.get("period");
    for (const input of choices("period"))
      input.checked = input.value === (isPeriod(period) ? period : "day");
    leadOn();
    // A chart is drawn for its width, and a hidden element has none.
    byId("gate").hidden = true;
    byId("inside").hidden = false;
    const desk = new Desk(session, player, project, environment);
    await desk.show(makers.map((maker) => maker(desk)));
    desk.watch();
  });
