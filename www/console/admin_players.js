// `/admin`: a search for players by id or by the beginning of their names, and the latest events.

import { eventRow, fillList, open, playerRow, refuse, withQuery } from "./admin.js";
import { allById, byId } from "./dom.js";

const PATH = "/api/admin/players";
const EVENTS = withQuery("/api/admin/events", { limit: 10 });

open(async (session) => {
  const [form, field, error] = allById("find", "query", "query-error");
  /** @param {string} query */
  const find = async (query) => {
    const { players } = await session.ask(withQuery(PATH, { query, limit: 50 }));
    byId("found").hidden = false;
    fillList("players", "none", players.map(playerRow));
  };
  const asked = new URLSearchParams(location.search).get("query") ?? "";
  field.value = asked;
  form.onsubmit = async (event) => {
    event.preventDefault();
    const query = field.value.trim();
    error.textContent = query ? "" : "Write a name or an id.";
    if (!query) return field.focus();
    try {
      await find(query);
      // Going back from a player's page leads to this search.
      history.replaceState(null, "", withQuery(location.pathname, { query }));
    } catch (refusal) {
      byId("found").hidden = true;
      refuse(refusal, error);
    }
  };
  const { events, names } = await session.ask(EVENTS);
  fillList(
    "events",
    "no-events",
    events.map((event) => eventRow(event, names)),
  );
  if (asked) await find(asked);
});
