// `/admin/projects`: all projects with their owners, and transfers to another owner.

import {
  announce,
  ask,
  boldName,
  eventRow,
  fillList,
  findPlayer,
  listItem,
  open,
  playerLink,
  refusalOf,
  send,
  withQuery,
} from "./admin.js";
import { byId, count, make, moment, plain, playersNow, userText } from "./dom.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Question } from "./admin.js" */
/** @import { Session } from "./session.js" */

const EVENTS = withQuery("/api/admin/events", { kind: "project-transferred", limit: 20 });

/** @type {Session} */
let session;
/** @type {Schemas["OwnedProjects"]} */
let shown;

/** @param {Schemas["OwnedProject"]} project */
const ownerOf = ({ owner }) => (owner ? (shown.names[owner] ?? owner) : "the platform");

const look = async () => {
  shown = await session.ask("/api/admin/projects");
  const { events, names } = await session.ask(EVENTS);
  fillList(
    "events",
    "no-events",
    events.map((event) => eventRow(event, names)),
  );
  draw();
};

/**
 * The first question asks for the new owner. The second one names both owners.
 *
 * @param {Schemas["OwnedProject"]} project
 * @returns {Question}
 */
const transfer = (project) => ({
  heading: "Transfer this project?",
  words: [
    ["The project ", boldName(project.slug), " belongs to ", boldName(ownerOf(project)), "."],
  ],
  yes: "Go on",
  takesText: {
    label: "New owner",
    rules: "The whole name or the id of a player who has signed in.",
    most: 40,
    isProse: false,
  },
  act: async (text) => {
    const player = await findPlayer(session, text);
    if (player.sub === project.owner) throw refusalOf("It is this player's already.");
    if (player.state === "merged")
      throw refusalOf(
        "This guest was merged into another player and owns nothing. Name that player.",
      );
    if (!player.linked) {
      throw refusalOf("A guest cannot own a project: the player must sign in first.");
    }
    return confirmed(project, player);
  },
});

/**
 * @param {Schemas["OwnedProject"]} project
 * @param {Schemas["Player"]} player
 * @returns {Question}
 */
const confirmed = (project, { sub, username }) => ({
  heading: "Transfer it to this player?",
  words: [
    ["The project ", boldName(project.slug), " goes to ", boldName(username), "."],
    [
      boldName(username),
      " deploys it and reads its log from then on; ",
      boldName(ownerOf(project)),
      " no longer does. Its players notice nothing.",
    ],
    ["Their id is ", make("code", { textContent: sub }), "."],
  ],
  yes: "Transfer",
  act: async () => {
    await send(session, "PUT", `/api/admin/projects/${encodeURIComponent(project.slug)}/owner`, {
      owner: sub,
    });
    await look();
    announce(`${plain(project.slug)} belongs to ${plain(username)} now.`);
  },
});

/**
 * @typedef {Omit<Question, "words" | "act">
 *   & { words: (slug: string) => Question["words"] }} StandingQuestion
 */

/**
 * Changes that are made on this page, after a question. The project page has the others.
 *
 * @type {Record<"disable" | "enable", StandingQuestion>}
 */
const STANDINGS = {
  disable: {
    heading: "Disable this project?",
    words: (slug) => [
      [
        "The game ",
        boldName(slug),
        " is shown to nobody, and nobody gets tokens for it. Its owner cannot enable it again; they read why.",
      ],
    ],
    yes: "Disable",
    isGrave: true,
    takesText: {
      label: "Reason",
      rules: "Its owner reads it on the project’s page. At most 500 characters.",
      most: 500,
      isProse: true,
    },
  },
  enable: {
    heading: "Enable this project?",
    words: (slug) => [["The game ", boldName(slug), " is shown again at once."]],
    yes: "Enable",
  },
};

/**
 * @param {string} slug
 * @param {"disable" | "enable"} change
 * @returns {Question}
 */
const standingQuestion = (slug, change) => ({
  ...STANDINGS[change],
  words: STANDINGS[change].words(slug),
  act: async (reason) => {
    if (change === "disable" && !reason) throw refusalOf("Write a sentence for the owner.");
    const body = change === "disable" ? { reason } : undefined;
    await send(session, "POST", `/api/projects/${encodeURIComponent(slug)}/${change}`, body);
    await look();
    announce(`${plain(slug)} is ${change}d now.`);
  },
});

/** @param {Schemas["OwnedProject"]} project */
const standingButton = ({ slug, standing: { state } }) => {
  const change = state === "disabled" ? "enable" : "disable";
  const button = make(
    "button",
    { className: "button second small-button", type: "button", hidden: state === "deleted" },
    change === "enable" ? "Enable…" : "Disable…",
    make("span", { className: "aside", textContent: ` ${plain(slug)}` }),
  );
  button.onclick = () => ask(standingQuestion(slug, change));
  return button;
};

/**
 * How the list names the state of a project that is not shown.
 *
 * @param {string} state
 */
const stateWords = (state) => (state === "owner-suspended" ? "down: owner suspended" : state);

/** @param {Schemas["OwnedProject"]} project */
const projectRow = (project) => {
  const { slug, owner, players, created_at, standing } = project;
  const button = make(
    "button",
    { className: "button second small-button", type: "button" },
    "Transfer…",
    make("span", { className: "aside", textContent: ` ${plain(slug)}` }),
  );
  button.onclick = () => ask(transfer(project));
  const whose = owner ? playerLink(owner, shown.names) : "the platform";
  return listItem(
    [
      make("a", { href: `/projects/${encodeURIComponent(slug)}` }, userText(slug)),
      standing.state === "live"
        ? ""
        : make("b", { className: "bad", textContent: ` ${stateWords(standing.state)}` }),
    ],
    ["of ", whose, ` · ${playersNow(players)} · since `, moment(created_at)],
    make("div", { className: "ways" }, standingButton(project), button),
  );
};

/** Shows the projects whose slug or owner contains the text of the search field. */
const draw = () => {
  const wanted = byId("query").value.trim().toLowerCase();
  /** @param {string | null | undefined} text */
  const has = (text) => text?.toLowerCase().includes(wanted);
  const found = shown.projects.filter((project) =>
    [project.slug, ownerOf(project), project.owner].some(has),
  );
  byId("tally").textContent = wanted
    ? `${found.length} of ${count(shown.projects.length, "project", "projects")}`
    : count(found.length, "project", "projects");
  byId("projects").replaceChildren(...found.map(projectRow));
};

open(async (opened) => {
  session = opened;
  await look();
  byId("query").oninput = draw;
  byId("find").onsubmit = (event) => event.preventDefault();
});
