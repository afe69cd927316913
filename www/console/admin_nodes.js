// `/admin/nodes`: the servers that run the platform, what they have applied, and whether their
// settings differ.

import { listItem, open } from "./admin.js";
import { byId, count, make, moment, userText } from "./dom.js";

/** @import { Schemas } from "../types/api.d.ts" */

const PATH = "/api/admin/nodes";
/** A clock that is further off is shown as a fault. */
const CLOCK_WARNING = 1_000;

/** What the names of faults mean. A name that is not here is shown as it is. */
const FAULTS = new Map([
  ["redis", "Redis does not answer"],
  ["s3", "the bucket does not answer"],
]);

/** @param {number} offset milliseconds */
const clockWords = (offset) => {
  const seconds = (Math.abs(offset) / 1_000).toFixed(1);
  return `clock ${seconds} s ${offset > 0 ? "ahead" : "behind"}`;
};

/** @param {string} text */
const fault = (text) => make("b", { className: "fault", textContent: text });

/**
 * What is wrong with a node, in words.
 *
 * @param {Schemas["Node"]} node
 * @param {number} newest
 */
const faults = ({ live, silent_seconds, applied, degraded, clock_offset }, newest) => {
  if (!live) return [`silent for ${count(silent_seconds, "second", "seconds")}`];
  const behind = newest - applied;
  const words = behind > 0 ? [`${count(behind, "change", "changes")} behind`] : [];
  if (clock_offset != null && Math.abs(clock_offset) > CLOCK_WARNING)
    words.push(clockWords(clock_offset));
  const others = degraded.filter((name) => name !== "clock");
  return [...words, ...others.map((name) => FAULTS.get(name) ?? name)];
};

/**
 * @param {Schemas["Node"]} node
 * @param {number} newest
 * @param {boolean} shared whether there may be other nodes
 */
const nodeRow = (node, newest, shared) => {
  const wrong = faults(node, newest);
  const isClockRight =
    node.live && node.clock_offset != null && Math.abs(node.clock_offset) <= CLOCK_WARNING;
  return listItem(
    [
      make("b", { className: node.live && !wrong.length ? "live" : "" }, userText(node.address)),
      shared && node.this ? " · answers you now" : "",
      ...wrong.flatMap((words) => [" · ", fault(words)]),
    ],
    [
      `program ${node.version}`,
      shared ? ` · version ${node.applied} applied` : "",
      ...(node.started_at ? [" · started ", moment(node.started_at)] : []),
      isClockRight ? " · clock right" : "",
      node.leases.length ? ` · does alone: ${node.leases.join(", ")}` : "",
    ],
  );
};

/** @param {Schemas["DifferingSetting"]} setting */
const settingRow = ({ name, values }) =>
  listItem(
    [make("code", { textContent: name })],
    values.flatMap(({ value, nodes }, index) => [
      index ? " · " : "",
      value === null || value === undefined
        ? fault("not set")
        : make("b", { className: "fault" }, userText(value)),
      " on ",
      userText(nodes.join(", ")),
    ]),
  );

/** @param {Schemas["Nodes"]} nodes */
const draw = ({ shared, newest, nodes, differing_settings, waits_for_standby }) => {
  byId("alone").hidden = shared;
  byId("shared").hidden = byId("version").hidden = !shared;
  byId("one-machine").hidden = waits_for_standby !== false;
  byId("differing").hidden = !differing_settings.length;
  byId("settings").replaceChildren(...differing_settings.map(settingRow));
  byId("nodes").replaceChildren(...nodes.map((node) => nodeRow(node, newest, shared)));
  byId("version").textContent = `The newest version is ${newest}.`;
};

open(async (session) => {
  const look = async () => draw(await session.ask(PATH));
  byId("again").onclick = look;
  await look();
});
