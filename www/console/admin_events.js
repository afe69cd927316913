// `/admin/events`: the log of events, one page at a time.

import { eventRow, fillList, findPlayer, open, refuse, withQuery } from "./admin.js";
import { allById, byId } from "./dom.js";

const LIMIT = 50;
const PAGE = "/admin/events";

open(async (session) => {
  const asked = Object.fromEntries(new URLSearchParams(location.search));
  const { player, kind, actor, before } = asked;
  const [field, kinds, actors, error] = allById("player", "kind", "actor", "player-error");
  field.value = player ?? "";
  kinds.value = kind ?? "";
  actors.value = actor ?? "";
  const query = { player, kind, actor, before, limit: LIMIT };
  const found = await session.ask(withQuery("/api/admin/events", query));
  fillList(
    "events",
    "no-events",
    found.events.map((event) => eventRow(event, found.names)),
  );
  const newest = byId("newest");
  const older = /** @type {HTMLAnchorElement} */ (byId("older"));
  newest.hidden = !before;
  newest.href = withQuery(PAGE, { player, kind, actor });
  older.hidden = !found.before;
  older.href = withQuery(PAGE, { player, kind, actor, before: found.before });
  byId("filter").onsubmit = async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    try {
      const { sub } = text ? await findPlayer(session, text) : {};
      location.assign(withQuery(PAGE, { player: sub, kind: kinds.value, actor: actors.value }));
    } catch (refusal) {
      refuse(refusal, error);
    }
  };
});
