// `/projects/<slug>`: the players, errors, log, settings and deployments of a project, for one of
// its environments at a time.

import { DeployTokens } from "./deploy_tokens.js";
import { askRollback, deployment, nameOf } from "./deployments.js";
import { byId, make, moment, pageData, playersNow, size, sum, userText } from "./dom.js";
import { close, enter, isFinal } from "./gate.js";
import { Players, RANGES } from "./players.js";
import { Search } from "./search.js";
import { Refusal } from "./session.js";
import { Settings } from "./settings.js";
import { drawStanding, offerTakedown } from "./takedown.js";
import { offerTestTokens } from "./test_token.js";
import { variable } from "./variables.js";

/** @import { Player, Schemas } from "../types/api.d.ts" */
/** @import { AskRollback } from "./deployments.js" */
/** @import { Range } from "./players.js" */
/** @import { Session } from "./session.js" */

/** Milliseconds between two requests for data that changes by itself. */
const LOOK = 15_000;
const NAMES = { dev: "dev", prod: "production" };

const slug = pageData("slug");
/**
 * Returns the radio buttons of a choice.
 *
 * @param {"env" | "range"} name
 * @returns {NodeListOf<HTMLInputElement>}
 */
const choices = (name) => document.querySelectorAll(`input[name="${name}"]`);

/**
 * @template {"env" | "range"} Name
 * @param {Name} name
 */
const chosen = (name) => {
  const input = [...choices(name)].find(({ checked }) => checked);
  return /** @type {Name extends "env" ? EnvironmentName : Range} */ (input?.value);
};

/**
 * @param {EnvironmentName} environment
 * @returns {`/api/projects/${string}/environments/${string}`}
 */
const pathOf = (environment) => `/api/projects/${slug}/environments/${environment}`;

/** @typedef {Schemas["EnvironmentName"]} EnvironmentName */

/** The page, for a viewer who may see it. */
class Page {
  #session;
  #players;
  #search;
  #settings;
  /**
   * The environment that the page shows. While another one is loading, the radio button is ahead
   * of it.
   *
   * @type {EnvironmentName}
   */
  #environment = "dev";
  /** @type {Schemas["Environment"] | undefined} */
  #shown;
  #turn = 0;
  #player;

  /**
   * @param {Session} session
   * @param {Player} player
   */
  constructor(session, player) {
    this.#session = session;
    this.#player = player;
    this.#players = new Players(session, slug);
    this.#search = new Search(session, slug, player.sub);
    this.#settings = new Settings(session, (now) => this.#draw(this.#environment, now));
    offerTestTokens(session, slug);
    for (const input of choices("env")) input.onchange = () => this.#switch();
    for (const input of choices("range")) {
      input.onchange = () => this.#guard(() => this.#lookBack());
    }
  }

  /**
   * Shows everything about an environment.
   *
   * @param {EnvironmentName} environment
   * @param {Schemas["Environment"]} now
   */
  async open(environment, now) {
    this.#environment = environment;
    byId("error-table").hidden = true;
    byId("no-errors").textContent = "";
    byId("error-words").textContent = "";
    this.#settings.show(pathOf(environment), now);
    byId("variables").replaceChildren(...Object.entries(now.variables).map(variable));
    this.#draw(environment, now);
    const search = this.#search.show(environment, `${now.url}/`, () => this.#shown);
    await Promise.all([this.#lookBack(), search]);
  }

  async #switch() {
    const [environment, turn] = [chosen("env"), ++this.#turn];
    // The forms still have the values of the other environment, which must not be saved here.
    this.#rest(true);
    await this.#guard(async () => {
      let opened;
      try {
        const now = await this.#session.ask(pathOf(environment));
        if (turn !== this.#turn) return;
        opened = this.open(environment, now);
        history.replaceState(null, "", `?env=${environment}`);
      } finally {
        if (turn === this.#turn) {
          byId(`env-${this.#environment}`).checked = true;
          this.#rest(false);
        }
      }
      await opened;
    });
  }

  /** @param {boolean} isResting */
  #rest(isResting) {
    /** @type {NodeListOf<HTMLElement>} */
    const parts = document.querySelectorAll("#inside > section");
    for (const part of parts) part.inert = isResting;
  }

  /** Shows players and errors of the chosen range of time. */
  async #lookBack() {
    const [environment, range] = [this.#environment, chosen("range")];
    await Promise.all([
      this.#players.show(environment, range),
      this.#countErrors(environment, range),
    ]);
  }

  /**
   * @param {EnvironmentName} environment
   * @param {Range} range
   */
  async #countErrors(environment, range) {
    const { length, words } = RANGES[range];
    const to = new Date();
    const query = new URLSearchParams({
      env: environment,
      from: new Date(to.getTime() - length).toISOString(),
      to: to.toISOString(),
    });
    const { deployments } = await this.#session.ask(`/api/projects/${slug}/errors?${query}`);
    const shown = this.#shown;
    if (!shown || environment !== this.#environment || range !== chosen("range")) return;
    const kept = new Map(shown.deployments.map((one) => [one.id, one]));
    // The current deployment is listed even without errors: its developer wants to know that.
    const current = shown.deployment?.id ?? null;
    const clean = { deployment: current, errors: 0, warnings: 0 };
    const first = deployments.find((one) => one.deployment === current) ?? clean;
    const rows = [
      ...(current ? [first] : []),
      ...deployments.filter((one) => !current || one !== first),
    ];
    byId("error-rows").replaceChildren(
      ...rows.map((one) => this.#errorRow(one, kept.get(one.deployment ?? ""))),
    );
    byId("error-table").hidden = !rows.length;
    byId("no-errors").hidden = deployments.length > 0;
    byId("no-errors").textContent = `No error and no warning was logged in ${words}.`;
    byId("error-words").textContent = deployments.length
      ? `In ${words}, by whole hours; a record that stands for many counts as many.`
      : "";
  }

  /**
   * @param {Omit<Schemas["DeploymentErrors"], "last_at"> & { last_at?: string }} errors
   * @param {Schemas["Deployment"] | undefined} kept
   */
  #errorRow({ deployment: id, errors, warnings, last_at: last }, kept) {
    const what = make("th", { scope: "row" });
    if (kept)
      what.append(
        nameOf(kept),
        " ",
        moment(kept.created_at),
        ...(kept.current ? [" ", make("b", { className: "now", textContent: "Shown now" })] : []),
      );
    else if (id)
      what.append(
        "One that is not kept ",
        make("code", { textContent: id.slice(0, 8), title: id }),
      );
    else what.append("Before the first deployment");
    /**
     * @param {number} value
     * @param {string} className
     */
    const number = (value, className) =>
      make("td", { className: value ? className : "", textContent: value.toLocaleString() });
    return make(
      "tr",
      {},
      what,
      number(errors, "bad"),
      number(warnings, "doubtful"),
      make("td", {}, last ? moment(last) : "–"),
    );
  }

  /**
   * Shows the state of an environment, unless the viewer has chosen another one meanwhile.
   *
   * @param {EnvironmentName} environment
   * @param {Schemas["Environment"]} now
   */
  #draw(environment, now) {
    if (environment !== this.#environment) return;
    /** @param {Schemas["Environment"]} then */
    const done = (then) => this.#draw(environment, then);
    const place = { session: this.#session, environment: pathOf(environment), game: now.url, done };
    /** @type {AskRollback} */
    const ask = (one, current) => askRollback(place, one, current);
    const same =
      JSON.stringify(this.#shown?.deployments) === JSON.stringify(now.deployments) &&
      this.#shown?.url === now.url;
    if (!same) {
      byId("deployments").replaceChildren(
        ...now.deployments.map((one) => deployment(one, now.deployment, ask)),
      );
    }
    this.#shown = now;
    byId("no-deployments").hidden = now.deployments.length > 0;
    const address = byId("address");
    address.href = now.url;
    address.textContent = now.url.replace(/^https?:\/\//, "");
    const deploy = `platform deploy --project ${slug}${environment === "prod" ? " --env prod" : ""}`;
    byId("undeployed").hidden = Boolean(now.deployment);
    byId("undeployed-words").textContent =
      `Nothing is deployed to ${NAMES[environment]} yet. In the game's folder, this puts it there:`;
    byId("undeployed-command").textContent = deploy;
    byId("nobody").dataset.never = now.deployment
      ? `Nobody has played here yet. Who plays at ${now.url} is counted within a minute.`
      : "Nobody has played here yet: there is nothing to play.";
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

  /** Asks regularly while the page is visible. */
  async watch() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, LOOK));
      if (document.hidden || byId("inside").hidden) continue;
      await this.#guard(async () => {
        const project = await this.#session.ask(`/api/projects/${slug}`);
        drawProject(project, this.#player);
        this.#draw(this.#environment, project.environments[this.#environment]);
        await this.#lookBack();
      });
    }
  }
}

/**
 * @param {Schemas["Project"]} project
 * @param {Player} player
 */
const drawOwner = ({ owner, owner_username: username, created_at: made }, player) => {
  byId("owner").replaceChildren(
    ...(owner
      ? [
          userText(username ?? "A player"),
          owner === player.sub ? " (you), " : ", ",
          make("code", { textContent: owner }),
        ]
      : ["The platform itself."]),
  );
  byId("made").replaceChildren(moment(made));
};

/**
 * Shows the data that belongs to the whole project and changes by itself.
 *
 * @param {Schemas["Project"]} project
 * @param {Player} player
 */
const drawProject = (project, player) => {
  const {
    environments: { dev, prod },
    logs: { bytes, quota_bytes: quota },
    files,
  } = project;
  drawStanding(project, player);
  byId("files-room").textContent = files.quota_bytes
    ? `Deployments take ${size(files.bytes)} of ${size(files.quota_bytes)}; earlier ones go first.`
    : `Deployments take ${size(files.bytes)}.`;
  byId("both").textContent = `${playersNow(sum(dev.players, prod.players))} in both environments`;
  byId("room").hidden = false;
  byId("room-words").textContent = quota
    ? `Logs use ${size(bytes)} of ${size(quota)}; the oldest go first.`
    : `Logs use ${size(bytes)}.`;
  byId("room-meter").hidden = !quota;
  if (quota) Object.assign(byId("room-meter"), { max: quota, value: bytes });
};

enter(async (session, player) => {
  const project = await session.ask(`/api/projects/${slug}`);
  const { dev, prod } = project.environments;
  const wanted = new URLSearchParams(location.search).get("env");
  const environment =
    wanted === "dev" || wanted === "prod"
      ? wanted
      : prod.deployment || !dev.deployment
        ? "prod"
        : "dev";
  byId(`env-${environment}`).checked = true;
  drawOwner(project, player);
  drawProject(project, player);
  offerTakedown(session, slug, (now) => drawProject(now, player));
  // A chart is drawn for its width, and a hidden element has none.
  byId("gate").hidden = true;
  byId("inside").hidden = false;
  new DeployTokens(session, slug, project.owner === player.sub).show();
  const page = new Page(session, player);
  await page.open(environment, project.environments[environment]);
  page.watch();
});
