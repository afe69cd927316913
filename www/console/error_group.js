// Everything about the errors of one cause, and the decision about them.

import { allById, byId, make, moment, plain, userText } from "./dom.js";
import { Entry } from "./entry.js";
import { chart } from "./error_chart.js";
import { badgesOf, titleOf } from "./error_groups.js";
import { errorRemoval } from "./error_removal.js";
import { Refusal } from "./session.js";
import { Sources } from "./source_map.js";

/** @import { Schemas } from "../types/api.d.ts" */
/** @import { Desk, Part } from "./project.js" */

/** @type {Record<string, string>} */
const BROWSERS = { chromium: "Chrome and Edge", firefox: "Firefox", safari: "Safari" };
/** What the button for each state says. */
const STATES = /** @type {const} */ (["resolved", "ignored", "open"]);

/** @param {Schemas["ErrorGroupDetail"]} group */
const excerptOf = ({ excerpt }) => {
  if (!excerpt) return [];
  return excerpt.lines.map((text, at) => {
    const number = excerpt.first + at;
    const line = make("span", { className: "code-line" });
    line.append(make("span", { className: "code-number", textContent: `${number} ` }));
    line.append(make("code", { textContent: plain(text) || " " }));
    if (number === excerpt.line) {
      line.classList.add("at-fault");
      line.append(make("span", { className: "aside", textContent: " (the error)" }));
    }
    return line;
  });
};

/** @param {Schemas["ErrorFrame"]} frame */
const frameOf = ({ call, file, line, column, mapped }) => {
  const item = make("li", { className: mapped ? "" : "soft" });
  if (call) item.append(userText(call), " ");
  item.append(make("span", { className: "place" }, userText([file, line, column].join(":"))));
  return item;
};

/**
 * @param {string} name
 * @param {number} number
 * @param {...(Node | string)} more
 */
const row = (name, number, ...more) =>
  make(
    "tr",
    {},
    make("th", { scope: "row", textContent: name }),
    make("td", { textContent: number.toLocaleString() }),
    ...(more.length ? [make("td", {}, ...more)] : []),
  );

/**
 * @param {Desk} desk
 * @returns {Part}
 */
export const errorGroup = (desk) => {
  const id = byId("group").dataset.id ?? "";
  const path = () =>
    /** @type {const} */ (`/api/projects/${desk.slug}/error-groups/${id}?env=${desk.environment}`);
  let shown = "";
  let busy = false;

  /** @param {Schemas["ErrorGroupDetail"]} group */
  const draw = (group) => {
    // What has not changed is left alone: somebody may be reading or marking it.
    const text = JSON.stringify(group);
    if (text === shown) return;
    shown = text;
    show(true);
    byId("group-title").replaceChildren(titleOf(group), " ", ...badgesOf(group));
    byId("group-place").replaceChildren(...(group.place ? [userText(group.place)] : []));
    byId("group-numbers").replaceChildren(
      ...[
        ["Errors", group.count.toLocaleString()],
        ["Players", group.players.toLocaleString()],
      ].map(([name, value]) =>
        make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value })),
      ),
      make(
        "div",
        {},
        make("dt", { textContent: "First" }),
        make("dd", { className: "when" }, moment(group.first_at)),
      ),
      make(
        "div",
        {},
        make("dt", { textContent: "Last" }),
        make("dd", { className: "when" }, moment(group.last_at)),
      ),
    );
    byId("group-week").replaceChildren(chart(group.week, "Errors in each hour of the last 7 days"));
    const back = group.regressed_at;
    byId("group-words").replaceChildren(
      ...(back
        ? ["It was resolved, and came back with a later deployment: ", moment(back), "."]
        : group.decided_at
          ? [
              group.state === "resolved" ? "Resolved " : "Ignored since ",
              moment(group.decided_at),
              group.state === "resolved"
                ? ". If a later deployment has it again, it is open again within seconds."
                : ".",
            ]
          : []),
    );
    for (const state of STATES) byId(`group-${state}`).hidden = group.state === state;
    byId("group-excerpt").replaceChildren(...excerptOf(group));
    byId("group-file").replaceChildren(...(group.excerpt ? [userText(group.excerpt.file)] : []));
    byId("group-source").hidden = !group.excerpt;
    byId("group-frames").replaceChildren(...group.frames.map(frameOf));
    byId("group-stack").hidden = !group.frames.length;
    const kept = new Map(desk.now.deployments.map((one) => [one.id, one]));
    byId("group-deployments").replaceChildren(
      ...group.deployments.map(({ id: deployment, count: number, last_at: last }) => {
        const known = kept.get(deployment);
        const name = `${known?.short_id ?? deployment.slice(0, 8)}${known?.current ? ", shown now" : ""}`;
        return row(name, number, moment(last));
      }),
    );
    byId("group-browsers").replaceChildren(
      ...group.browsers.map(({ name, count: number }) => row(BROWSERS[name] ?? name, number)),
    );
    drawRecords(group.records);
  };

  /** Says that there is no such group. */
  const rest = () => {
    shown = "";
    show(false);
    byId("group-title").textContent = "No such error";
  };

  /** @param {boolean} isThere */
  const show = (isThere) => {
    byId("group-missing").hidden = isThere;
    for (const part of allById("group", "group-ways", "group-place", "group-words"))
      part.hidden = !isThere;
    for (const part of allById("group-source", "group-stack", "group-spread", "group-kept"))
      part.hidden = !isThere;
  };

  /** @param {Schemas["LogRecord"][]} records */
  const drawRecords = (records) => {
    const { now } = desk;
    const game = `${now.url}/`;
    const view = {
      game,
      self: desk.player.sub,
      sources: new Sources(game, () => desk.now.deployment?.id, {
        session: desk.session,
        environment: desk.path,
        has: (deployment) => desk.now.deployments.some((one) => one.id === deployment),
      }),
      now: () => desk.now,
      withDay: true,
    };
    byId("group-records").replaceChildren(
      ...records.map((record) => new Entry(record, view).element),
    );
    byId("group-no-records").hidden = records.length > 0;
    byId("group-records-words").textContent = records.length
      ? `The newest that are kept: ${records.length}.`
      : "";
  };

  for (const state of STATES) {
    byId(`group-${state}`).onclick = async () => {
      if (busy) return;
      busy = true;
      try {
        const response = await desk.session.open(path(), {
          method: "PUT",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ state }),
        });
        draw(await response.json());
        byId("group-error").textContent = "";
        byId("news").textContent = {
          open: "It is open again.",
          resolved: "It is resolved.",
          ignored: "It is ignored.",
        }[state];
      } catch (refusal) {
        if (!(refusal instanceof Refusal)) throw refusal;
        byId("group-error").textContent = refusal.message;
      } finally {
        busy = false;
      }
    };
  }

  const askToDelete = errorRemoval();
  byId("group-delete").hidden = desk.project.role === "viewer";
  byId("group-delete").onclick = () =>
    askToDelete(
      ["It is deleted with its counts. If it happens again, it is listed again."],
      async () => {
        await desk.session.open(path(), { method: "DELETE" });
        rest();
        byId("news").textContent = "It was deleted.";
      },
    );

  return {
    // Whoever has just fixed it waits for whether it comes back.
    eager: true,
    look: async () => {
      const isSame = desk.mark();
      try {
        const group = await desk.session.ask(path());
        if (isSame() && !busy) draw(group);
      } catch (refusal) {
        // The other environment may not have it, which is not the end of the page.
        if (!(refusal instanceof Refusal && refusal.status === 404)) throw refusal;
        if (isSame()) rest();
      }
    },
  };
};
