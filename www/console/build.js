// `/build/<slug>`: the dev environment of a game: the game itself, its log, its deployments.

import { askRollback, deployment } from "./deployments.js";
import { allById, byId, count, make, pageData, plain } from "./dom.js";
import { close, enter, isFinal } from "./gate.js";
import { Log } from "./log.js";
import { Panes } from "./panes.js";
import { Refusal } from "./session.js";
import { Sources } from "./source_map.js";
import { standingWords } from "./standing.js";
import { follow } from "./stream.js";
import { variable } from "./variables.js";

/** @import { Player, Schemas } from "../types/api.d.ts" */
/** @import { AskRollback, Place } from "./deployments.js" */
/** @import { Session } from "./session.js" */

/** Milliseconds between two requests for the deployments and the number of players. */
const LOOK = 5000;
const [slug, game] = [pageData("slug"), pageData("game")];
const environment = /** @type {const} */ (`/api/projects/${slug}/environments/dev`);
/** @type {Schemas["Environment"] | undefined} */
let shown;
/** Whether the project is taken down. Then the game's address has nothing for a frame to show. */
let isDown = false;

/** @type {Panes} */
let panes;

/** @param {Schemas["Environment"]} environment */
const drawWarnings = ({ warnings, deployment: current }) => {
  byId("warnings").hidden = !current;
  byId("warnings").classList.toggle("warned", warnings.length > 0);
  byId("no-warnings").hidden = warnings.length > 0;
  byId("drawer-words").hidden = !current || !warnings.length;
  byId("drawer-words").textContent = count(warnings.length, "warning", "warnings");
  /** @param {Schemas["Warning"]} warning */
  const item = ({ code, message }) =>
    make(
      "li",
      {},
      plain(message),
      " ",
      make("code", { className: "soft note", textContent: code }),
    );
  byId("warning-list").replaceChildren(...warnings.map(item));
};

/**
 * Redraws only what has changed: the viewer may be using the rest.
 *
 * @param {Session} session
 * @param {Schemas["Environment"]} now
 */
const draw = (session, now) => {
  const { deployments, deployment: current, variables } = now;
  const [before, id] = [shown?.deployment?.id, current?.id];
  if (!shown) byId("variables").replaceChildren(...Object.entries(variables).map(variable));
  byId("players").textContent = String(now.players ?? "?");
  byId("isolated").hidden = !now.cross_origin_isolated;
  byId("nothing").hidden = Boolean(current);
  byId("no-deployments").hidden = deployments.length > 0;
  if (!shown || JSON.stringify(shown.deployments) !== JSON.stringify(deployments)) {
    /** @type {Place} */
    const place = { session, environment, game, done: (changed) => draw(session, changed) };
    /** @type {AskRollback} */
    const ask = (one, current) => askRollback(place, one, current);
    byId("deployments").replaceChildren(...deployments.map((one) => deployment(one, current, ask)));
    drawWarnings(now);
  }
  shown = now;
  for (const button of allById("reload", "fullscreen")) button.disabled = !current;
  if (id && id !== before) {
    if (!isDown) panes.start();
    if (before) byId("news").textContent = "Another deployment is shown now.";
  }
};

/**
 * Asks every few seconds while the page is visible.
 *
 * @param {Session} session
 */
const watch = async (session) => {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK));
    if (document.hidden) continue;
    try {
      draw(session, await session.ask(environment));
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      if (isFinal(refusal)) return close(refusal);
    }
  }
};

/**
 * @param {Session} session
 * @param {Player} player
 */
const followLog = async (session, player) => {
  const sources = new Sources(game, () => shown?.deployment?.id, {
    session,
    environment,
    has: (id) => Boolean(shown?.deployments.some((one) => one.id === id)),
  });
  /** @param {string | null} who */
  const paneOf = (who) => panes.find(who, player.sub);
  const log = new Log({ game, self: player.sub, sources, now: () => shown, paneOf });
  const path = /** @type {const} */ (`/api/projects/${slug}/logs`);
  const { records } = await session.ask(`${path}?env=dev&limit=200`);
  // The stream goes on after the newest of these records, so no record is missing or comes twice.
  const last = records[0]?.id ?? "0";
  log.addPast(records);
  const connection = byId("connection");
  follow(session, `${path}/stream?env=dev`, last, {
    record: (record) => log.add(record),
    dropped: (number) => log.dropped(number),
    state: (live, words = "Not connected.") => {
      connection.textContent = live ? "Live" : `${words} Trying again…`;
      connection.classList.toggle("live", live);
    },
    end: close,
  });
};

/**
 * Shows why the frame stays empty, if the project is taken down.
 *
 * @param {Schemas["Project"]} project
 */
const drawStanding = ({ standing }) => {
  const words = standingWords(standing);
  isDown = words.length > 0;
  byId("standing").hidden = !isDown;
  byId("standing").replaceChildren(...words, " The project page says what can be done.");
};

/** Shows what was opened, which is below the window. */
const showDrawer = () => {
  const drawer = byId("drawer");
  if (drawer.open) drawer.scrollIntoView({ block: "nearest" });
};

enter(async (session, player) => {
  byId("drawer").ontoggle = showDrawer;
  drawStanding(await session.ask(`/api/projects/${slug}`));
  const now = await session.ask(environment);
  panes = new Panes(session);
  draw(session, now);
  await followLog(session, player);
  byId("reload").onclick = () => panes.start();
  byId("fullscreen").onclick = () => byId("stage").requestFullscreen();
  watch(session);
});
