// `/admin/players/<id>`: everything about one player, and what an administrator can do.

import {
  announce,
  ask,
  boldName,
  eventRow,
  fillList,
  kindOf,
  listItem,
  open,
  playerLink,
  refusalOf,
  send,
} from "./admin.js";
import { allById, byId, count, make, moment, pageData, plain, userText } from "./dom.js";

/** @import { Player, Schemas } from "../types/api.d.ts" */
/** @import { Question } from "./admin.js" */
/** @import { Inside } from "./dom.js" */
/** @import { Session } from "./session.js" */

const sub = pageData("player");
const PATH = /** @type {const} */ (`/api/admin/players/${sub}`);

/**
 * @param {string} name
 * @param {...Inside} value
 */
const fact = (name, ...value) => [make("dt", { textContent: name }), make("dd", {}, ...value)];

/** @param {Schemas["PlayerDetails"]} player */
const facts = ({
  sub,
  is_admin,
  created_at,
  seen_at,
  state,
  linked,
  merged_into,
  names,
  deletion,
  ...player
}) => [
  ...fact("Name", userText(player.username)),
  ...fact("Id", make("code", { textContent: sub })),
  ...fact("State", kindOf({ state, linked })),
  ...(merged_into ? fact("Merged into", playerLink(merged_into, names)) : []),
  ...(deletion
    ? fact("Deletion", "On ", moment(deletion.at), ", asked for on ", moment(deletion.asked_at))
    : []),
  ...(is_admin ? fact("May", "Administer the platform") : []),
  ...fact("Made", moment(created_at)),
  ...(linked ? [] : fact("Last here", moment(seen_at))),
];

/** @param {Schemas["Session"]} session */
const browser = ({ created_at, renewed_at }) =>
  listItem("A browser", ["since ", moment(created_at), " · last used ", moment(renewed_at)]);

/** @param {Schemas["Device"]} device */
const device = ({ client, network, signed_in_at, used_at }) =>
  listItem(
    ["A device, by ", userText(client)],
    [
      "from ",
      userText(network),
      " · since ",
      moment(signed_in_at),
      " · last used ",
      moment(used_at),
    ],
  );

/** @param {Schemas["Identity"]} identity */
const identity = ({ provider, issuer, hash, linked_at }) =>
  listItem(userText(provider), [
    userText(issuer ?? "Its settings are gone"),
    " · since ",
    moment(linked_at),
    make("br"),
    "Hash of issuer and subject ",
    make("code", { textContent: hash }),
  ]);

/** @param {string} slug */
const project = (slug) =>
  listItem(make("a", { href: `/projects/${encodeURIComponent(slug)}` }, userText(slug)));

/**
 * @param {Schemas["PlayerDetails"]} shown
 * @param {Player} self
 */
const drawState = (shown, self) => {
  const { state, reason, sessions, devices } = shown;
  const isSuspended = state === "suspended";
  const [suspended, suspend, lift, end] = allById("suspended", "suspend", "lift", "end");
  suspended.hidden = !isSuspended;
  suspended.replaceChildren(
    ...(reason
      ? ["Suspended. The player reads: ", userText(reason)]
      : ["Suspended, without a reason."]),
  );
  suspend.hidden = isSuspended || state === "merged" || sub === self.sub;
  lift.hidden = !isSuspended;
  end.disabled = sessions.length + devices.length === 0;
  byId("limits").textContent =
    state === "merged"
      ? "This guest was merged into another player and cannot play any more. Act on that player instead."
      : sub === self.sub
        ? "This is you. Only another administrator may suspend you."
        : "";
};

/**
 * @param {Schemas["PlayerDetails"]} shown
 * @param {Player} self
 */
const draw = (shown, self) => {
  const { username, sessions, devices, identities, merged_from, projects, events, names } = shown;
  byId("heading").replaceChildren(userText(username));
  document.title = `${plain(username)} · ${document.title.split(" · ").slice(-2).join(" · ")}`;
  byId("who").replaceChildren(...facts(shown));
  drawState(shown, self);
  fillList("sessions", "no-sessions", [...sessions.map(browser), ...devices.map(device)]);
  fillList("identities", "no-identities", identities.map(identity));
  const merges = merged_from.map((guest) =>
    listItem(
      ["The guest ", playerLink(guest.sub, names)],
      guest.merged_at ? [moment(guest.merged_at)] : [],
    ),
  );
  fillList("merges", "no-merges", merges);
  fillList("projects", "no-projects", projects.map(project));
  fillList(
    "events",
    "no-events",
    events.map((event) => eventRow(event, names)),
  );
};

/**
 * @param {Schemas["PlayerDetails"]} shown
 * @param {(now: Schemas["PlayerDetails"], sentence: string) => void} done
 * @returns {Question}
 */
const suspension = (shown, done) => ({
  heading: "Suspend this player?",
  words: [
    [
      boldName(shown.username),
      ", ",
      shown.linked ? "an account" : "a guest",
      ", can neither play nor sign in until somebody lifts the suspension. Games that are open learn of it within a minute; their backends may take the player's last token until it ends.",
    ],
  ],
  yes: "Suspend",
  isGrave: true,
  takesText: true,
  act: async (reason) => {
    if (!reason) throw refusalOf("Write a sentence for the player.");
    done(await send(session, "PUT", `${PATH}/suspension`, { reason }), "is suspended");
  },
});

/** @type {Session} */
let session;

/**
 * @param {Schemas["PlayerDetails"]} shown
 * @param {(now: Schemas["PlayerDetails"], sentence: string) => void} done
 * @returns {Question}
 */
const lifting = (shown, done) => ({
  heading: "Lift the suspension?",
  words: [[boldName(shown.username), " may sign in and play again at once, as the same player."]],
  yes: "Lift",
  act: async () => done(await send(session, "DELETE", `${PATH}/suspension`), "may play again"),
});

/**
 * @param {Schemas["PlayerDetails"]} shown
 * @param {(now: Schemas["PlayerDetails"], sentence: string) => void} done
 * @returns {Question}
 */
const ending = (shown, done) => {
  const { sessions, devices, linked, username } = shown;
  const places = [
    sessions.length && count(sessions.length, "browser", "browsers"),
    devices.length && count(devices.length, "device", "devices"),
  ];
  const where = places.filter(Boolean).join(" and ");
  const after = linked
    ? "Signing in again brings the same player back."
    : "A guest has no other way back: this player, and all that they have reached, is gone for good.";
  return {
    heading: "End all sessions?",
    words: [[boldName(username), ` is signed out of ${where}. ${after}`]],
    yes: "End sessions",
    isGrave: !linked,
    act: async () => {
      const { ended } = await send(session, "POST", `${PATH}/end-sessions`);
      done(await session.ask(PATH), `was signed out: ${count(ended, "session", "sessions")} ended`);
    },
  };
};

open(async (opened, self) => {
  session = opened;
  let shown = await session.ask(PATH);
  /**
   * @param {Schemas["PlayerDetails"]} now
   * @param {string} sentence
   */
  const done = (now, sentence) => {
    shown = now;
    draw(shown, self);
    announce(`${plain(shown.username)} ${sentence}.`);
  };
  draw(shown, self);
  byId("suspend").onclick = () => ask(suspension(shown, done));
  byId("lift").onclick = () => ask(lifting(shown, done));
  byId("end").onclick = () => ask(ending(shown, done));
});
