// `/admin/keys`: the signing keys and their states, and how to rotate and revoke them.

import { announce, ask, eventRow, fillList, listItem, open, send, withQuery } from "./admin.js";
import { byId, make, moment, plain } from "./dom.js";

/** @import { Schemas } from "../types/api.d.ts" */

const PATH = "/api/admin/keys";
const EVENTS = ["key-added", "key-revoked"].map((kind) =>
  withQuery("/api/admin/events", { kind, limit: 20 }),
);
/** @type {Record<string, string>} */
const STATES = {
  published: "Published, signs later",
  signing: "Signing",
  retiring: "Retiring, verifies older tokens",
  gone: "Gone",
};

/**
 * @param {Schemas["Key"]} key
 * @param {(kid: string, state: string) => void} revoke
 */
const keyRow = ({ kid, state, sealed, created_at, signs_from, stops_at }, revoke) =>
  listItem(
    [
      make("b", {
        className: state === "signing" ? "live" : "",
        textContent: STATES[state] ?? plain(state),
      }),
      " ",
      make("code", { textContent: kid }),
    ],
    [
      "made ",
      moment(created_at),
      " · signs from ",
      moment(signs_from),
      ...(stops_at ? [" to ", moment(stops_at)] : []),
      sealed ? " · sealed in the store" : "",
    ],
    make(
      "div",
      { className: "ways" },
      make("button", {
        className: "button second small-button",
        type: "button",
        textContent: "Revoke…",
        ariaLabel: `Revoke… ${kid}`,
        onclick: () => revoke(kid, state),
      }),
    ),
  );

/**
 * @param {Schemas["Keys"]} keys
 * @param {(kid: string, state: string) => void} revoke
 */
const draw = ({ keys }, revoke) => {
  byId("keys").replaceChildren(...keys.map((key) => keyRow(key, revoke)));
  const next = keys.find(({ state }) => state === "published");
  byId("rotate").hidden = Boolean(next);
  const waiting = byId("waiting");
  waiting.hidden = !next;
  if (next)
    waiting.replaceChildren(
      "A new key signs from ",
      moment(next.signs_from),
      "; then you can rotate again.",
    );
};

open(async (session) => {
  const drawEvents = async () => {
    const answers = await Promise.all(EVENTS.map((path) => session.ask(path)));
    const events = answers.flatMap(({ events, names }) =>
      events.map((event) => ({ event, names })),
    );
    events.sort((one, other) => other.event.id - one.event.id);
    fillList(
      "events",
      "no-events",
      events.slice(0, 20).map(({ event, names }) => eventRow(event, names)),
    );
  };
  /**
   * @param {string} kid
   * @param {string} state
   */
  const revoke = (kid, state) =>
    ask({
      heading: "Revoke this signing key?",
      words: [
        ["The key ", make("code", { textContent: kid }), " is taken back, for ever."],
        "It is gone from the key set at once. The platform refuses what it signed from now on, games' backends within ten minutes.",
        state === "signing"
          ? "A new key signs at once. Pages that play get new tokens by themselves; no player is signed out."
          : "The key that signs stays the same.",
        "This is for a key that somebody else may know. Rotate a key that has only grown old.",
      ],
      yes: "Revoke",
      isGrave: true,
      act: async () => {
        draw(await send(session, "POST", `${PATH}/${encodeURIComponent(kid)}/revoke`), revoke);
        await drawEvents();
        announce("The key is revoked.");
      },
    });
  draw(await session.ask(PATH), revoke);
  await drawEvents();
  const question = {
    heading: "Rotate the signing keys?",
    words: [
      "A new key is published now and signs in 21 minutes, when everybody who verifies tokens has it. Today's key then only verifies, until the last of its tokens has ended.",
      "No player is signed out, and no token is refused on the way.",
    ],
    yes: "Rotate",
    act: async () => {
      draw(await send(session, "POST", `${PATH}/rotate`), revoke);
      await drawEvents();
      announce("A new key is published.");
    },
  };
  byId("rotate").onclick = () => ask(question);
});
