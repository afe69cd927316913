// Errors with one cause as one group: the list of groups, with search and states.

import { byId, count, make, moment, userText } from "./dom.js";
import { chart } from "./error_chart.js";
import { errorRemoval } from "./error_removal.js";
import { Refusal } from "./session.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

/** How many groups a page has. */
const PAGE = 25;
/** Milliseconds after the last key before a search begins. */
const PAUSE = 300;

/**
 * Returns what a group is called: type and message, which players' pages wrote.
 *
 * @param {Schemas["ErrorGroup"]} group
 */
export const titleOf = ({ kind, message }) => {
  const title = make("span", { className: "fault" });
  if (kind) title.append(userText(kind, "fault-kind"), " ");
  title.append(userText(message.split("\n")[0] || (kind ? "" : "Without a message")));
  return title;
};

/**
 * Returns the state of a group, if it is not just open.
 *
 * @param {Schemas["ErrorGroup"]} group
 */
export const badgesOf = ({ state, regressed_at: regressed }) => {
  const words = regressed
    ? "Came back"
    : { open: "", resolved: "Resolved", ignored: "Ignored" }[state];
  return words
    ? [make("b", { className: `badge ${regressed ? "back" : state}`, textContent: words })]
    : [];
};

/**
 * @param {Desk} desk
 * @param {Schemas["ErrorGroup"]} group
 */
const item = (desk, group) => {
  const link = make("a", {
    href: `/projects/${desk.slug}/errors/${group.id}?env=${desk.environment}`,
  });
  link.append(titleOf(group));
  const facts = make(
    "p",
    { className: "note soft" },
    `${count(group.count, "time", "times")}, ${count(group.players, "player", "players")}, last `,
    moment(group.last_at),
  );
  const about = make("div", { className: "group-about" });
  about.append(link, ...badgesOf(group));
  if (group.place) about.append(make("p", { className: "place" }, userText(group.place)));
  about.append(facts);
  return make("li", {}, about, chart(group.hours, "Errors in each of the last 24 hours"));
};

/**
 * @param {Desk} desk
 * @returns {Part}
 */
export const errorGroups = (desk) => {
  /**
   * Where each earlier page, this page and the next page begin.
   *
   * @type {{ behind: (string | undefined)[], here?: string, next?: string }}
   */
  let pages = { behind: [] };
  let turn = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  const [search, state] = [byId("group-text"), byId("group-state")];
  const [newer, older] = [byId("groups-newer"), byId("groups-older")];
  const all = byId("groups-delete");
  const askToDelete = errorRemoval();

  /** What is searched for, as the list and the removal of what it finds have it. */
  const wanted = () => {
    const query = new URLSearchParams({ env: desk.environment });
    if (state.value) query.set("state", state.value);
    if (search.value.trim()) query.set("search", search.value.trim());
    return query;
  };

  /**
   * @param {(string | undefined)[]} behind
   * @param {string | undefined} here
   */
  const show = async (behind, here) => {
    const mine = ++turn;
    const query = wanted();
    query.set("limit", String(PAGE));
    if (here) query.set("before", here);
    const { groups, before, others } = await desk.session.ask(
      `/api/projects/${desk.slug}/error-groups?${query}`,
    );
    if (mine !== turn) return;
    pages = { behind, here, next: before ?? undefined };
    byId("groups").replaceChildren(...groups.map((group) => item(desk, group)));
    const isAsked = Boolean(search.value.trim()) || state.value !== "open" || behind.length > 0;
    const quiet = byId("no-groups");
    quiet.hidden = groups.length > 0;
    quiet.textContent = isAsked ? "No error is like this." : (quiet.dataset.empty ?? "");
    newer.hidden = !behind.length;
    older.hidden = !before;
    const rest = byId("groups-others");
    rest.hidden = !others;
    const belong = count(others, "error belongs", "errors belong");
    rest.textContent = `${belong} to causes that are not kept: there were too many.`;
    all.hidden = !groups.length || desk.project.role === "viewer";
  };

  /**
   * After a click, a refusal is shown here: the page's own loop does not see it.
   *
   * @param {(string | undefined)[]} behind
   * @param {string | undefined} [here]
   */
  const turnTo = async (behind, here) => {
    try {
      await show(behind, here);
      byId("groups-error").textContent = "";
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      byId("groups-error").textContent = refusal.message;
    }
  };

  byId("group-search").onsubmit = (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    turnTo([]);
  };
  search.oninput = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => turnTo([]), PAUSE);
  };
  state.onchange = () => turnTo([]);
  older.onclick = () => turnTo([...pages.behind, pages.here], pages.next);
  newer.onclick = () => turnTo(pages.behind.slice(0, -1), pages.behind.at(-1));
  all.onclick = () => {
    const query = wanted();
    const [what, text] = [query.get("state") ?? "", query.get("search")];
    const words = [
      `All ${what} errors of this environment`,
      ...(text ? [" that contain ", userText(text)] : []),
      " are deleted with their counts, on all pages of this list. One that happens again is listed again.",
    ];
    askToDelete(words, async () => {
      const path = /** @type {const} */ (`/api/projects/${desk.slug}/error-groups?${query}`);
      const response = await desk.session.open(path, { method: "DELETE" });
      const { removed } = await response.json();
      byId("news").textContent = `${count(removed, "error was", "errors were")} deleted.`;
      await turnTo([]);
    });
  };

  return {
    open: () => {
      pages = { behind: [] };
      byId("groups").replaceChildren();
    },
    // Only the first page changes by itself; who reads an older one is not disturbed.
    look: async () => {
      if (!pages.behind.length) await show([], undefined);
    },
  };
};
