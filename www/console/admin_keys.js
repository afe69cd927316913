// `/admin/keys`: the signing keys, what each does, and rotating them.

import { ask, eventRow, fill, open, row, send, tell, withQuery } from "./admin.js";
import { byId, make, moment, plain } from "./dom.js";

const PATH = "/api/admin/keys";
const EVENTS = withQuery("/api/admin/events", { kind: "key-added", limit: 20 });
const STATES = {
  published: "Published, signs later",
  signing: "Signing",
  retiring: "Retiring, verifies older tokens",
  gone: "Gone",
};

const keyRow = ({ kid, state, sealed, created_at, signs_from, stops_at }) =>
  row(
    [make("b", { className: state === "signing" ? "live" : "", textContent: STATES[state] ?? plain(state) }), " ", make("code", { textContent: kid })],
    [
      "made ",
      moment(created_at),
      " · signs from ",
      moment(signs_from),
      ...(stops_at ? [" to ", moment(stops_at)] : []),
      sealed ? " · sealed in the store" : "",
    ],
  );

const draw = ({ keys }) => {
  byId("keys").replaceChildren(...keys.map(keyRow));
  const next = keys.find(({ state }) => state === "published");
  byId("rotate").hidden = Boolean(next);
  const waiting = byId("waiting");
  waiting.hidden = !next;
  if (next) waiting.replaceChildren("A new key signs from ", moment(next.signs_from), "; then you can rotate again.");
};

open(async (session) => {
  const drawEvents = async () => {
    const { events, names } = await session.ask(EVENTS);
    fill("events", "no-events", events.map((event) => eventRow(event, names)));
  };
  draw(await session.ask(PATH));
  await drawEvents();
  const question = {
    heading: "Rotate the signing keys?",
    words: [
      "A new key is published now and signs in 21 minutes, when everybody who verifies tokens has it. Today's key then only verifies, until the last of its tokens has ended.",
      "No player is signed out, and no token is refused on the way.",
    ],
    yes: "Rotate",
    act: async () => {
      draw(await send(session, "POST", `${PATH}/rotate`));
      await drawEvents();
      tell("A new key is published.");
    },
  };
  byId("rotate").onclick = () => ask(question);
});
